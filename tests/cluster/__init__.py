"""A real Kubernetes control plane with KEDA on one machine, without containers; see README.md."""
