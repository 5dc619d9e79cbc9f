"""What authors of plug-ins for labmates need: templates to begin with, and checks of what they have made."""
