"""How the exporter is told what to do: environment, file and flags."""
