"""An example of a plug-in for labmates: a task, a judge and a scripted baseline on enzyme kinetics."""
