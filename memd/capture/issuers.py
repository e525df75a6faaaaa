r"""The table of tokens of further issuers, as in `patterns`: what each looks like, and a cheap sign of it. Pure.

Most of these are a prefix and hexadecimal, an id or small letters, which `entropy` rightly takes for no
evidence: without a row of their own they would be kept. Standard library only.
Not here: what Pattern means (`patterns`), notations (`shapes`).
"""

from memd.capture.patterns import EDGE, HEX_UUID, WORD_EDGE, Pattern

ISSUERS: tuple[Pattern, ...] = (
    Pattern(
        "sourcegraph-token",
        EDGE + r"sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}(?![0-9a-z])",
        ("sgp_",),
    ),
    Pattern("buildkite-token", EDGE + r"bk[a-z]a_[0-9a-f]{40}", ("bkua_", "bkaa_", "bkra_")),
    Pattern(
        "circleci-token",
        EDGE + r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{16,30}_[0-9a-f]{40}",
        ("CCIPAT_", "CCIPRJ_"),
    ),
    Pattern("vercel-token", EDGE + r"vc[piark]_[A-Za-z0-9_-]{24,}", ("vcp_", "vci_", "vca_")),
    Pattern("render-key", EDGE + r"rnd_[A-Za-z0-9]{28,}", ("rnd_",)),
    Pattern("neon-key", EDGE + r"napi_[a-z0-9]{48,}", ("napi_",)),
    Pattern("prefect-key", EDGE + r"pn[ub]_[A-Za-z0-9]{36}", ("pnu_", "pnb_")),
    Pattern(
        "openshift-token", EDGE + r"sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", ("sha256~",)
    ),
    Pattern(
        "dynatrace-token",
        EDGE + r"dt0[a-z]\d{2}\.[A-Z0-9]{20,28}\.[A-Z0-9]{64}",
        ("dt0c01.", "dt0s0", "dt0a01."),
    ),
    Pattern(
        "yandex-key",
        EDGE
        + r"(?:AQVN[A-Za-z0-9_-]{35,38}|y[0-3]_[A-Za-z0-9_-]{50,}|t1\.[A-Za-z0-9_=-]{40,}\.[A-Za-z0-9_=-]{40,})",
        ("AQVN", "y0_", "y1_", "y2_", "y3_", "t1."),
    ),
    Pattern("elevenlabs-key", EDGE + r"sk_[0-9a-f]{48}(?![0-9a-z])", ("sk_",)),
    Pattern("langfuse-key", EDGE + rf"sk-lf-{HEX_UUID}", ("sk-lf-",)),
    Pattern("nvidia-key", EDGE + r"nvapi-[A-Za-z0-9_-]{40,}", ("nvapi-",)),
    Pattern("fireworks-key", EDGE + r"fw_[A-Za-z0-9]{22,24}(?![A-Za-z0-9_])", ("fw_",)),
    Pattern("pinecone-key", EDGE + r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}", ("pcsk_",)),
    Pattern(
        "hubspot-token",
        EDGE + rf"pat-(?:na|eu|ap)\d-{HEX_UUID}",
        ("pat-na", "pat-eu", "pat-ap"),
    ),
    Pattern(
        "launchdarkly-key",
        WORD_EDGE + rf"(?:sdk|api|mob)-{HEX_UUID}",
        ("sdk-", "api-", "mob-"),
    ),
    Pattern("shippo-token", EDGE + r"shippo_(?:live|test)_[0-9a-f]{40}", ("shippo_",)),
    Pattern(
        "asana-token",
        r"(?:(?<![\w/.-])|(?<=\\[nrt]))[12](?:/|%2F)\d{10,20}(?:(?:/|%2F)\d{10,20})?(?::|%3A)[0-9a-f]{32}(?![0-9a-f])",
        ("1/", "2/", "1%2F", "2%2F"),
    ),
    Pattern(
        "flutterwave-key", EDGE + r"FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,40}(?:-X)?", ("FLWSECK",)
    ),
    Pattern("easypost-key", EDGE + r"EZ[AT]K[A-Za-z0-9]{54}", ("EZAK", "EZTK")),
    Pattern("duffel-token", EDGE + r"duffel_(?:test|live)_[A-Za-z0-9_=-]{40,}", ("duffel_",)),
    Pattern("sendinblue-key", EDGE + r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}", ("xkeysib-",)),
    Pattern(
        "firebase-server-key", r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}", (":APA91b",)
    ),
    Pattern("typeform-token", EDGE + r"tfp_[A-Za-z0-9_.=-]{40,}", ("tfp_",)),
    Pattern("readme-key", EDGE + r"rdme_[a-z0-9]{70}", ("rdme_",)),
    Pattern("contentful-token", EDGE + r"CFPAT-[A-Za-z0-9_-]{40,}", ("CFPAT-",)),
    Pattern("posthog-key", EDGE + r"ph[xsr]_[A-Za-z0-9]{32,}", ("phx_", "phs_", "phr_")),
    Pattern("frameio-token", EDGE + r"fio-u-[A-Za-z0-9_=-]{60,}", ("fio-u-",)),
    Pattern("infracost-key", EDGE + r"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])", ("ico-",)),
    Pattern("octopus-key", EDGE + r"API-[A-Z0-9]{25,32}(?![A-Za-z0-9])", ("API-",)),
)
"""Tried after the tokens of `patterns`."""
