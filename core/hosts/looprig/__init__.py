"""looprig: sessions whose loops stop at gates, told of by a journal and answered gate by gate."""
