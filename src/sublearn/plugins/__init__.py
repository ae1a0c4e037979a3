"""This library as a part of other programs; each file needs the program that it is for."""
