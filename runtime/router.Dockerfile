# docker build -f runtime/router.Dockerfile -t REGISTRY/headway/router:0.1.0 .
FROM python:3.11-slim-bookworm
COPY requirements/router.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --target /usr/lib/headway/site -r /tmp/requirements.txt && rm /tmp/requirements.txt
ENV PYTHONPATH=/usr/lib/headway/site PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["python3", "-m", "vllm_router.launch_router"]
