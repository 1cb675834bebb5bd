"""
One page about what happened: figures and plots, in one HTML file that needs no network.

``series`` works out levels over time, ``figures`` what the page says, ``plots`` draws, ``page``
puts it together.
"""
