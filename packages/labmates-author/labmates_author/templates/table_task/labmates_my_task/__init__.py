"""The science task my_task for labmates."""
