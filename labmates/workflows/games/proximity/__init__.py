"""What drives how near play is to the optimum?"""
