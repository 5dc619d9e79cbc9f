"""The anomaly task: faults in sensor data."""
