"""What develops roundtrip and is no part of it: a local chain, a demo on it, a tour, generated documents."""
