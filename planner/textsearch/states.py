"""The default parser's automaton, as text (manual 12.5): what each state does with the next character.

A line is ``tests action [state] [token]``; the first line one of whose tests holds is taken. Tests are
classes of characters, single characters in quotes, or ``end``; actions:

    next S         take the character and go to S (``=``: stay)
    push S         remember this place and these lines, take the character and try S
    pop            S was a dead end: back to the remembered place, to the lines behind the one that pushed
    keep S         take the character, go to S, and forget the innermost remembered place: S has proved itself
    merge          take the character and go on in the state that pushed
    rerun S        go to S with the same character
    found S token  a token ends before this character; the next one begins in S. ``found1`` forgets the innermost
                   remembered place, ``found*`` all

A word after ``!`` names what is done before the action.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_TABLE: Final = """
Base
  end next =
  '<' push TagFirst
  ignore next Space
  ascii next AsciiWord
  letter next Word
  digit next UnsignedInt
  '-' '+' push SignedIntFirst
  '&' push EntityFirst
  '~' push FileTwiddle
  '/' push FileFirst
  '.' push PathFirstFirst
  any next Space
NumWord
  letter digit mark next =
  '@' push Email
  '/' push FileFirst
  '.' push FileNext
  '-' push HyphenNumWordFirst
  any found Base numword
AsciiWord
  ascii next =
  '.' push HostFirstDomain
  '.' push FileNext
  '-' push HostFirstAN
  '-' push HyphenAsciiWordFirst
  '_' push HostFirstAN
  '@' push Email
  ':' push ProtocolFirst
  '/' push FileFirst
  digit push Host
  digit next NumWord
  letter mark next Word
  any found Base asciiword
Word
  letter mark next =
  digit next NumWord
  '-' push HyphenWordFirst
  any found Base word
UnsignedInt
  digit next =
  '.' push HostFirstDomain
  '.' push UDecimalFirst
  'e' 'E' push MantissaFirst
  '-' push HostFirstAN
  '_' push HostFirstAN
  '@' push Email
  ascii push Host
  letter mark next NumWord
  '/' push FileFirst
  any found Base uint
SignedIntFirst
  digit keep SignedInt
  any pop
SignedInt
  digit next =
  '.' push DecimalFirst
  'e' 'E' push MantissaFirst
  any found Base int
Space
  end '<' found Base blank
  ignore next =
  '-' '+' '&' '/' found Base blank
  other next =
  any found Base blank
UDecimalFirst
  digit keep UDecimal
  any pop
UDecimal
  digit next =
  '.' push VersionFirst
  'e' 'E' push MantissaFirst
  any found Base float
DecimalFirst
  digit keep Decimal
  any pop
Decimal
  digit next =
  '.' push VerVersion
  'e' 'E' push MantissaFirst
  any found Base float
VerVersion
  digit rerun SVerVersion !restart
  any pop
SVerVersion
  end pop
  digit found* UnsignedInt blank
  any next =
VersionFirst
  digit keep Version
  any pop
Version
  digit next =
  '.' push VersionFirst
  any found Base version
MantissaFirst
  digit keep Mantissa
  '+' '-' next MantissaSign
  any pop
MantissaSign
  digit keep Mantissa
  any pop
Mantissa
  digit next =
  any found Base sfloat
EntityFirst
  '#' next EntityNumFirst
  ascii ':' '_' next Entity
  any pop
Entity
  letter digit ':' '_' '.' '-' next =
  ';' next EntityEnd
  any pop
EntityNumFirst
  'x' 'X' next EntityHexNumFirst
  digit next EntityNum
  any pop
EntityHexNumFirst
  hex next EntityHexNum
  any pop
EntityNum
  digit next =
  ';' next EntityEnd
  any pop
EntityHexNum
  hex next =
  ';' next EntityEnd
  any pop
EntityEnd
  any found1 Base entity
TagFirst
  '/' push TagCloseFirst
  '!' push CommentFirst
  '?' push XmlBegin
  ascii ':' '_' push TagName
  any pop
XmlBegin
  'x' next Tag
  any pop
TagCloseFirst
  ascii next TagName
  any pop
TagName
  '/' next TagBeginEnd
  '>' next TagEnd !tag
  space next Tag !tag
  letter digit ':' '_' '.' '-' next =
  any pop
TagBeginEnd
  '>' next TagEnd
  any pop
Tag
  '>' next TagEnd !tag
  ''' next TagQuoted
  '"' next TagDoubleQuoted
  ascii digit '=' '-' '_' '#' '/' ':' '.' '&' '?' '%' '~' next =
  space next = !tag
  any pop
TagQuoted
  end pop
  '\\' push TagBackslash
  ''' next Tag
  any next =
TagDoubleQuoted
  end pop
  '\\' push TagBackslash
  '"' next Tag
  any next =
TagBackslash
  end pop
  any merge
TagEnd
  any found* Base tag
CommentFirst
  '-' next CommentLast
  'D' 'd' next Tag
  any pop
CommentLast
  '-' next Comment
  any pop
Comment
  end pop
  '-' next CommentCloseFirst
  any next =
CommentCloseFirst
  end pop
  '-' next CommentCloseLast
  any next Comment
CommentCloseLast
  end pop
  '-' next =
  '>' next CommentEnd
  any next Comment
CommentEnd
  any found* Base tag
HostFirstDomain
  ascii next HostDomainSecond
  digit next Host
  any pop
HostDomainSecond
  ascii next HostDomain
  digit push Host
  '-' '_' push HostFirstAN
  '.' push HostFirstDomain
  '@' push Email
  any pop
HostDomain
  end found* Base host
  ascii next =
  digit push Host
  ':' push PortFirst
  '-' '_' push HostFirstAN
  '.' push HostFirstDomain
  '@' push Email
  digit pop
  stop-host found* UrlPathStart host
  '/' push FUrl
  any found* Base host
PortFirst
  digit next Port
  any pop
Port
  end found* Base host
  digit next =
  stop-host found* UrlPathStart host
  '/' push FUrl
  any found* Base host
HostFirstAN
  digit ascii next Host
  any pop
Host
  digit ascii next =
  '@' push Email
  '.' push HostFirstDomain
  '-' '_' push HostFirstAN
  any pop
Email
  stop-host pop
  host found* Base email
  any pop
FileFirst
  ascii digit next File
  '.' next PathFirst
  '_' next File
  '~' push FileTwiddle
  any pop
FileTwiddle
  ascii digit '_' next File
  '/' next FileFirst
  any pop
PathFirst
  ascii digit '_' next File
  '.' next PathSecond
  '/' next FileFirst
  any pop
PathFirstFirst
  '.' next PathSecond
  '/' next FileFirst
  any pop
PathSecond
  end found1 Base file
  '/' push FileFirst
  '/' found1 Base file
  space found1 Base file
  any pop
File
  ascii digit next =
  '.' push FileNext
  '_' '-' next =
  '/' push FileFirst
  any found Base file
FileNext
  ascii digit '_' keep File
  any pop
UrlPathFirst
  end pop
  url next UrlPath
  any pop
UrlPathStart
  any next UrlPath
UrlPath
  url next =
  any found Base url_path
FUrl
  end pop
  url-path found* Base url !again-host
  any pop
ProtocolFirst
  '/' next ProtocolSecond
  any pop
ProtocolSecond
  '/' next ProtocolEnd
  any pop
ProtocolEnd
  any found* Base protocol
HyphenAsciiWordFirst
  ascii next HyphenAsciiWord
  letter next HyphenWord
  digit next HyphenDigitLookahead
  any pop
HyphenAsciiWord
  ascii next =
  letter mark next HyphenWord
  digit next HyphenNumWord
  '-' push HyphenAsciiWordFirst
  any found* ParseHyphen asciihword !again
HyphenWordFirst
  letter next HyphenWord
  digit next HyphenDigitLookahead
  any pop
HyphenWord
  letter mark next =
  digit next HyphenNumWord
  '-' push HyphenWordFirst
  any found* ParseHyphen hword !again
HyphenNumWordFirst
  letter next HyphenNumWord
  digit next HyphenDigitLookahead
  any pop
HyphenNumWord
  letter digit mark next =
  '-' push HyphenNumWordFirst
  any found* ParseHyphen numhword !again
HyphenDigitLookahead
  digit next =
  letter mark next HyphenNumWord
  any pop
ParseHyphen
  ascii next HyphenAsciiWordPart
  letter next HyphenWordPart
  digit push HyphenUnsignedInt
  '-' push ParseHyphenHyphen
  any rerun Base
ParseHyphenHyphen
  letter digit mark found1 ParseHyphen blank
  any pop
HyphenWordPart
  end found Base hword_part
  letter mark next =
  digit next HyphenNumWordPart
  any found ParseHyphen hword_part
HyphenAsciiWordPart
  end found Base hword_asciipart
  ascii next =
  letter mark next HyphenWordPart
  digit next HyphenNumWordPart
  any found ParseHyphen hword_asciipart
HyphenNumWordPart
  end found Base hword_numpart
  letter digit mark next =
  any found ParseHyphen hword_numpart
HyphenUnsignedInt
  digit next =
  letter mark keep HyphenNumWordPart
  any pop
"""


class Rule(NamedTuple):
    """One line for one test. ``test``: a class, or a character in quotes; ``state`` "": it stays; ``token``
    "": none.
    """

    test: str
    action: str
    state: str
    token: str
    special: str


def states() -> dict[str, tuple[Rule, ...]]:
    """Return the rules of each state."""
    found: dict[str, list[Rule]] = {}
    for line in _TABLE.strip().splitlines():
        if not line.startswith(" "):
            rules = found[line] = []
            continue
        words = line.split()
        special = words.pop()[1:] if words[-1].startswith("!") else ""
        at = next(i for i, word in enumerate(words) if word in _ACTIONS)
        state, token = (*words[at + 1 :], "", "")[:2]
        rules += [Rule(test, words[at], "" if state == "=" else state, token, special) for test in words[:at]]
    return {name: tuple(rules) for name, rules in found.items()}


_ACTIONS: Final = frozenset(("next", "push", "pop", "keep", "merge", "rerun", "found", "found1", "found*"))
