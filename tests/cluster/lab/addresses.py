"""Names, addresses and ports of the native cluster."""

NODE = "headway-lab"
# On the loopback interface, as the machine may lack dummy links; the kubelet refuses 127.0.0.0/8.
NODE_ADDRESS = "172.31.255.1"
API_SERVER = f"https://{NODE_ADDRESS}:6443"

ETCD_CLIENT_URL = "https://127.0.0.1:12379"
ETCD_PEER_URL = "https://127.0.0.1:12380"

POD_NETWORK = "10.244.0.0/22"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVER_SERVICE_ADDRESS = "10.96.0.1"  # the first of SERVICE_NETWORK, by definition
BRIDGE = "hwlab0"
CLUSTER_DOMAIN = "cluster.local"

PROMETHEUS_PORT = 9090
PROMETHEUS_URL = f"http://{NODE_ADDRESS}:{PROMETHEUS_PORT}"
# Where pods of fake nodes get their addresses, counting up from this one. Nothing answers there
# unless a benchmark sees to it.
FAKE_POD_NETWORK = "10.200.0.1/16"
