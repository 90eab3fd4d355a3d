"""Whether `why` answers about altered recordings what their lines alone say."""
