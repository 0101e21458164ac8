"""The headline benchmark: the same work for several ways to scale, at once, on one real control plane with KEDA."""
