"""The page of `memd view`: what memd knows, in a browser, over the control socket alone."""
