"""Random and adversarial strings for tokenizers, the same for the same seed."""
import random
import unicodedata

WORDS = ("the of and Hello world isn't I'LL you're WE'VE foo_bar camelCaseWord HTTPServer2 naïve résumé "
         "Größe привет мир κόσμος 你好 世界 こんにちは 한국어 שלום مرحبا नमस्ते ไทย 123 3.14159 2024-01-31 "
         "0xDEADBEEF ½ Ⅷ ² ٣٤٥ https://example.org/a?b=c&d=%20 <|im_start|> <|endoftext|> [MASK] </s> <s> "
         "'s 't 'Re 'VE 'ſ don't ﬁn ǅ İ ß ẞ ŉ Å ＡＢＣ").split(" ")
CODE = ["def f(x):\n    return x**2\n", "for (int i = 0; i < n; ++i) {\n\ta[i] += b[i];\n}\n",
        "SELECT * FROM t WHERE a >= 10;", "#include <stdio.h>\r\n", "{\"a\": [1, 2, {\"b\": null}]}",
        "x = y ** 2 // 3 % 4 -= 1 && !z || ~w", "/* comment */ // line", "\\begin{align}x^2\\end{align}"]
EMOJI = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "1️⃣", "🤷‍♀️", "😀", "🧑🏿‍💻", "❤️‍🔥", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\r", "\n\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\u2028",
          "\u2029", "\u0085", "\u180e", "\ufeff", "\v", "\f", "   \n  ", "\t\t", "\u202f", "\u1680", "\x1c"]
MARKS = [chr(c) for c in list(range(0x300, 0x370)) + list(range(0x1AB0, 0x1ABE)) + [0x20DD, 0x0591,
         0x05BF, 0x064B, 0x0670, 0x093C, 0x094D, 0x09BE, 0x0B57, 0x0DCF, 0x0E31, 0x1100, 0x1161, 0x11A8,
         0x302A, 0x3099, 0xFE0F, 0xFE20, 0x1D165, 0x1133E]]
PUNCT = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»“”‘’—–…、。，！？؟۔।¿¡§¶†•№€£¥°±×÷≠∞√∑♪★☃")
RANGES = [(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x36F), (0x370, 0x52F), (0x530, 0x6FF), (0x700, 0x10FF),
          (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x2BFF), (0x2C00, 0x2FFF), (0x3000, 0x33FF),
          (0x3400, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0xF900, 0xFFFF),
          (0x10000, 0x1FFFF), (0x20000, 0x2FFFF), (0x30000, 0x3134F), (0xE0000, 0xE01EF),
          (0xF0000, 0x10FFFF), (0x0, 0x1F), (0x7F, 0x9F)]


# Marks whose combining class the `tokenizers` library does not know (its normalizer has the tables of
# Unicode 9): it leaves them where they stand, we order them by Unicode 15. Found by trying every mark.
NEWER_MARKS = [(0x7FD, 0x7FD), (0x898, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C, 0xC3C),
               (0xD3B, 0xD3C), (0xEBA, 0xEBA), (0x1715, 0x1715), (0x1ABF, 0x1ACE), (0x1DF6, 0x1DFA),
               (0xA82C, 0xA82C), (0x10D24, 0x10D27), (0x10EAB, 0x10EAC), (0x10F46, 0x10F50),
               (0x10F82, 0x10F85), (0x11070, 0x11070), (0x1133B, 0x1133B), (0x1145E, 0x1145E),
               (0x11839, 0x1183A), (0x11938, 0x11938), (0x1193D, 0x1193E), (0x11943, 0x11943),
               (0x119E0, 0x119E0), (0x11A34, 0x11A34), (0x11A47, 0x11A47), (0x11A99, 0x11A99),
               (0x11D42, 0x11D45), (0x11D97, 0x11D97), (0x16FF0, 0x16FF1), (0x1E130, 0x1E136),
               (0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF)]


def is_known(c):
    """Do all engines know the character alike? Python 3.11 has Unicode 14's list of assigned ones."""
    if unicodedata.category(chr(c)) in ("Cn", "Cs"):
        return False
    return not any(lo <= c <= hi for lo, hi in NEWER_MARKS)


def code_point(rng):
    while True:
        c = rng.randint(*rng.choice(RANGES))
        if is_known(c):
            return chr(c)


def one(rng):
    kind = rng.randrange(14)
    n = rng.randint(1, 30)
    if kind == 0:
        return "".join(code_point(rng) for _ in range(n))
    if kind == 1:
        return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(n))
    if kind == 2:
        return "".join(rng.choice(EMOJI) + rng.choice(["", " ", "a"]) for _ in range(rng.randint(1, 6)))
    if kind == 3:
        return "".join(rng.choice("aeouAEOUcnkgwij가각") + "".join(rng.choice(MARKS) for _ in range(rng.randint(0, 6)))
                       for _ in range(n))
    if kind == 4:
        return "".join(rng.choice(SPACES) for _ in range(n)) + rng.choice(WORDS)
    if kind == 5:
        return "".join(rng.choice(CODE) for _ in range(rng.randint(1, 4)))
    if kind == 6:
        return "".join(rng.choice("0123456789٣४三½²Ⅷ ,.") for _ in range(n))
    if kind == 7:
        return "".join(rng.choice(PUNCT + [" ", "a", "1", "\n"]) for _ in range(n))
    if kind == 8:
        return rng.choice("aAé中 \n1.!한ิ́") * rng.randint(1, 300)
    if kind == 9:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyzABCDEFGH'") for _ in range(rng.randint(20, 400)))
    if kind == 10:
        lo, hi = rng.choice(RANGES[:20])
        return "".join(chr(c) for c in (rng.randint(lo, hi) for _ in range(n)) if is_known(c))
    if kind == 11:
        return "".join(rng.choice([rng.choice(WORDS), rng.choice(SPACES), rng.choice(PUNCT), code_point(rng),
                                   rng.choice(EMOJI), rng.choice(MARKS)]) for _ in range(n))
    if kind == 12:
        return " " * rng.randint(0, 40) + rng.choice(WORDS) + "\n" * rng.randint(0, 20) + "\t" * rng.randint(0, 30)
    return "".join(rng.choice("'sStTdDmMlLvVrReE’ſ .") for _ in range(n))


def texts(n, seed):
    rng = random.Random(seed)
    fixed = ["", " ", "\n", "a", "\x00", "a\x00b", "\ufffd", "\U0010ffff", "'", "''s", "a" * 5000,
             "é" * 3000, "e\u0301" * 3000, " " * 5000, "\n" * 3000, "1" * 3000, "a\u0301\u0316" * 1000,
             "a" + "\u0316\u0301" * 500, "▁", "▁▁a ▁b", "<0x41>", "##ing", "Ġ", "Ċ"]
    return fixed + [one(rng) for _ in range(n - len(fixed))]
