"""Do dispositions in games predict outcomes in the lab?"""
