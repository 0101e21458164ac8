"""The model: what DBOS's rows mean to an autoscaler. Pure: standard library only, no I/O, no clock."""
