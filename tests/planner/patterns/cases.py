"""Regular expressions worth keeping: one or two of each kind, as (text, pattern, flags)."""

from __future__ import annotations

from tests.support.patterns import Case

CASES: list[Case] = [
    # the manual's examples of preferences (9.7.3.5)
    ("XY1234Z", r"Y*([0-9]{1,3})", ""), ("XY1234Z", r"Y*?([0-9]{1,3})", ""),
    ("abc01234xyz", r"(.*)(\d+)(.*)", ""), ("abc01234xyz", r"(.*?)(\d+)(.*)", ""),
    ("abc01234xyz", r"(?:(.*?)(\d+)(.*)){1,1}", ""), ("abcd", "ab|abc|abcd", ""), ("abcd", "(a|ab)(c|bcd)(d*)", ""),
    # quantified groups with back references, quantified constraints
    ("bbbbb", r"^([bc])\1*$", ""), ("ccc", r"^([bc])\1*$", ""), ("xxx", r"^([bc])\1*$", ""), ("bbc", r"^([bc])\1*$", ""),
    ("b", r"^([bc])\1*$", ""), ("abc abc abc", r"^(\w+)( \1)+$", ""), ("abc abd abc", r"^(\w+)( \1)+$", ""),
    ("abc abc abd", r"^(\w+)( \1)+$", ""), ("abc abc abc", r"^(.+)( \1)+$", ""), ("a", r"((((((a)*)*)*)*)*)*", ""),
    ("aa", r"(^(?!aa))+", ""), ("ab", r"(^(?!aa))+", ""), ("dd x", r"(^(?!aa)(?!bb)(?!cc))+", ""), ("foo", r"(\Y\Y)+", ""),
    ("xyz", r"((^^)$)*", ""), ("aab", r"(a*)*b\1", ""), ("", r"()*\1", ""), ("", r"(a*)*\1", ""), ("xyx", r"(x|y)*\1", ""),
    ("Aa", r"(a)\1", "i"), ("abAB", r"(.)(.)\1\2", "i"), ("aabb", r"(a){0}(b)\2", ""), ("ab", r"(.){0}(\1)", ""),
    # look-around
    ("foobar", r"foo(?=bar)", ""), ("foobaz", r"foo(?!bar)", ""), ("xfoo", r"(?<=x)foo", ""), ("xfoo", r"(?<!x)f?oo", ""),
    ("abcdef", r"(?<=a.*)e(?=.*f)", ""), ("x" * 30, r"(?=x*x*x*x*x*x*x*y)z", ""), ("aab", r"(?=(a+))\1", ""),
    # options, flavours
    ("a.c", "***=a.c", ""), ("abc", "***:A.C", "i"), ("a\nb", "a.b", "n"), ("a\nb", "^b", "w"), ("a\nb", "a$", "n"),
    ("a b", "a b", "x"), ("ab", "a b # comment", "x"), ("A", "(?i)a", ""), ("a+b", "(?q)a+b", ""), ("a+b", "a+b", "q"),
    ("a)b", "a)b", "e"), ("a)b", "a)b", ""), ("aab", r"\(a\)\1b", "b"), ("*a", "*a", "b"), ("a{2}", r"a\{2\}", "b"),
    ("a", "a", "qn"), ("a", "***?", ""), ("a", "***x", ""), ("a", "(?z)a", ""), ("a", "(?i", ""), ("aa", "(?b)a*", ""),
    # brackets
    ("]", "[]]", ""), ("a-b", "[a-]+", ""), ("-", "[[.hyphen.]]", ""), ("é", "[[=é=]]", ""), ("_", "[[:word:]]", ""),
    ("ß", "[[:upper:]]", "i"), ("٣", r"\d", ""), ("٣", r"\w", ""), ("\u00a0", r"\s", ""), ("a]b", r"a[\]]b", ""),
    ("a1", r"[\w\D]+", ""), ("x", "[^[:alpha:]]", ""), ("K", "k", "i"), ("ſ", "S", "i"), ("ǅ", "ǅ", "i"), ("ǆ", "[Ǆ-ǅ]", "i"),
    ("a", "[a", ""), ("a", "[[:foo:]]", ""), ("a", "[[.foo.]]", ""), ("a", "[b-a]", ""), ("a", "[a-[:alpha:]]", ""),
    ("word here", r"\mhere\M", ""), ("word here", r"[[:<:]]h", ""), ("word", r"\yword\y", ""), ("a_b", r"\y", ""),
    # escapes
    ("\t", r"\t", ""), ("A", r"\x41", ""), ("é", r"\u00e9", ""), ("a", r"\141", ""), ("\\", r"\B", ""), ("a", r"\u12", ""),
    ("a", "a\\", ""), ("a", r"\z", ""), ("a", r"\1", ""), ("a", r"(a)\2", ""), ("aa", r"(a)\1", ""), ("\x01", r"\cA", ""),
    # bounds
    ("aaa", "a{2}", ""), ("aaa", "a{2,}?", ""), ("aaa", "a{256}", ""), ("aaa", "a{2,1}", ""), ("aaa", "a{1", ""), ("a{", "a{", ""),
    ("aaa", "a{1a}", ""), ("aaa", "a**", ""), ("aaa", "*a", ""), ("aaa", "(a", ""), ("aaa", "a|*b", ""), ("aaa", "a{,2}", ""),
    ("aaa", "(a{0,1}){0,3}?a", ""), ("ab", "(a+?){0,1}b", ""), ("aab", "(a+?){0,1}b", ""), ("aa", "(a){1,1}?[a]+()", ""),
    # empty
    ("", "", ""), ("abc", "", ""), ("abc", "x*", ""), ("abc", "|a", ""), ("abc", "()", ""), ("", "^$", ""), ("a", "(|a)", ""),
]  # fmt: skip
