"""Grafana dashboards as code; the chart ships what they generate.

They are in Grafana's classic form: every Grafana takes it in, and so does the sidecar that loads
dashboards from ConfigMaps. The newer form (v2) needs a recent Grafana.
"""

from __future__ import annotations

import warnings

# The library warns of the classic form when it is imported.
warnings.filterwarnings("ignore", "Prefer using dashboardv2", DeprecationWarning)
