"""What is known about SGLang and how evidence is judged: text and facts in, findings out. No I/O."""
