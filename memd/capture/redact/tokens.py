"""Regexes of issued tokens (data).

A regex is compiled when one of its needles is first seen, so a hook without a daemon compiles few. If a regex has a
group `s`, only that is redacted, else the whole match. Every regex is bounded or anchored at the edge of a run, so
that no input makes it scan the same characters repeatedly. Standard library only, without `dataclasses`,
which would cost the hook 20 ms.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

HEX_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
# Not inside a longer word, except after an escaped line break (`\n` inside a JSON string).
EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
WORD_EDGE = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_GAP = r"\\{0,7}[\"'`]?\s{0,4}[:=]\s{0,4}\\{0,7}[\"'`]?"
_VALUE_END = r"(?![A-Za-z0-9/+_.-])"


PLACEHOLDER = r"\[REDACTED:[a-z0-9-]{1,40}\](?:#\d{1,9})?"
"""What replaces a secret; `#2` distinguishes two keys of an object."""


@functools.cache
def compile_regex(regex: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a regex at its first use."""
    return re.compile(regex, flags)


def find_all(needle: str, lowered: str) -> Iterator[int]:
    """Yield where a word begins in a text, overlapping ones too."""
    at = lowered.find(needle)
    while at >= 0:
        yield at
        at = lowered.find(needle, at + 1)


def find_beginning(
    regex: re.Pattern[str], needles: Iterable[str], text: str, lowered: str
) -> Iterator[re.Match[str]]:
    """Yield the matches of a regex that always begins with one of these words, tried only where they stand."""
    if len(lowered) != len(text):  # a few letters grow when lowered; then offsets would not agree
        yield from regex.finditer(text)
        return
    done = 0
    for at in sorted({at for needle in needles for at in find_all(needle, lowered)}):
        if at >= done and (found := regex.match(text, at)):
            yield found
            done = found.end()


class Pattern(NamedTuple):
    """One secret known by its form. Every text that the regex matches contains one of the `needles`."""

    name: str
    regex: str
    needles: tuple[str, ...]
    folded: bool = False
    """Search for the needles in the lower-cased text, not in its long words."""
    references: bool = False
    """Leave a match that only refers to a secret: `${TOKEN}`, `<password>`."""
    begins: bool = False
    """Folded only: every match begins with a needle, so the regex is tried only there."""
    run: int = 0
    """Folded only: every match has at least this many token characters in a row."""
    gate: tuple[str, ...] = ()
    """Folded only: lower-case texts of which every match has one; they save trying a regex."""
    named: bool = False
    """Folded only: every match contains a word that names of secrets contain, such as `pass`."""
    check: Callable[[str], bool] | None = None
    """Leave a match that this says is no secret."""

    def compiled(self) -> re.Pattern[str]:
        """The regex, compiled once."""
        return compile_regex(self.regex, re.ASCII)


# A table with a row per secret: name, regex, needles, flags.
# fmt: off
_CLOUDS = (
    Pattern("aws-access-key-id", EDGE + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
            ("AKIA", "ASIA", "ABIA", "ACCA")),
    Pattern("aws-marketplace-key", EDGE + rf"amzn\.mws\.{HEX_UUID}", ("amzn.mws.",)),
    # Assigned in any notation, or bare: forty characters of all classes in a text about AWS.
    Pattern("aws-secret-key",
            r"(?i:secret[ _-]?(?:access[ _-]?)?key)(?:[^A-Za-z0-9\n/+]{1,12}|\s{1,4}is\s{1,4})"
            r"(?P<s>[A-Za-z0-9/+]{40})" + _VALUE_END,
            ("secret",), folded=True, begins=True, run=40, references=True),
    Pattern("aws-bare-secret-key",
            r"(?<![A-Za-z0-9/+_.-])(?=[a-z0-9/+]{0,39}[A-Z])(?=[A-Z0-9/+]{0,39}[a-z])"
            r"(?=[A-Za-z/+]{0,39}[0-9])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+_.=-])",
            ("aws", "akia", "asia"), folded=True, run=40),
    Pattern("aws-session-token",
            r"(?:FwoGZXIvYXdzE|FQoGZXIvYXdzE|IQoJb3JpZ2luX2Vj)[A-Za-z0-9/+=]{50,}",
            ("oGZXIvYXdzE", "IQoJb3JpZ2luX2Vj")),
    Pattern("aws-bedrock-key",
            EDGE + r"(?:ABSK[A-Za-z0-9+/=]{60,}|bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/=%]*)",
            ("ABSK", "bedrock-api-key-")),
    Pattern("gcp-api-key", r"AIza[A-Za-z0-9_-]{35}", ("AIza",)),
    Pattern("gcp-private-key-id", r"private_key_id" + _GAP + r"(?P<s>[0-9a-f]{40})(?![0-9a-f])",
            ("private_key_id",), folded=True, begins=True, run=40),
    Pattern("google-oauth-token", EDGE + r"ya29\.[A-Za-z0-9._-]{20,}", ("ya29.",)),
    Pattern("google-refresh-token", r"(?<![A-Za-z0-9/])1//0[A-Za-z0-9_-]{30,}", ("1//0",)),
    Pattern("google-client-secret", r"(?:GOCSPX|gocspx)-[A-Za-z0-9_-]{20,}", ("GOCSPX-", "gocspx-")),
    Pattern("azure-storage-key",
            r"(?i:account|shared ?access)(?i:key)=(?P<s>[A-Za-z0-9+/]{40,}={0,2})",
            ("key=",), folded=True, run=40),
    Pattern("azure-sas", r"(?i:(?:(?<![A-Za-z0-9_])|u0026)sig=)(?P<s>[A-Za-z0-9%+/_-]{20,}=*)",
            ("sig=",), folded=True, run=20),
    Pattern("azure-client-secret",
            r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}", ("Q~",)),
    Pattern("azure-key", r"[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{27}", ("JQQJ9",)),
    Pattern("azure-devops-token", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", ("AZDO",)),
    Pattern("cloudflare-token",
            EDGE + r"(?:(?:cfut|cfat|cfk)_[A-Za-z0-9_-]{30,}|v1\.0-[0-9a-f]{24}-[0-9a-f]{100,})",
            ("cfut_", "cfat_", "cfk_", "v1.0-")),
    Pattern("cloudflare-key",
            r"(?i:cloudflare|(?<![A-Za-z])cf_|(?<=\\[nrt])cf_)[A-Za-z_ -]{0,30}" + _GAP
            + r"(?P<s>[A-Za-z0-9_-]{37,40})(?![A-Za-z0-9_-])",
            ("cloudflare", "cf_"), folded=True, begins=True, run=37),
    Pattern("digitalocean-token", r"do[opr]_v1_[0-9a-f]{64}", ("_v1_",)),
    Pattern("heroku-key",
            r"HRKU-[A-Za-z0-9_-]{30,}|(?i:heroku)[\w .-]{0,30}" + _GAP + rf"(?P<s>{HEX_UUID})",
            ("hrku-", "heroku"), folded=True, run=30),
    Pattern("databricks-token", EDGE + r"dapi[0-9a-f]{32}(?:-\d)?", ("dapi",)),
    Pattern("fly-token", EDGE + r"(?:fm[12][ar]?_|fo1_)[A-Za-z0-9+/=_-]{40,}",
            ("fm1", "fm2", "fo1_")),
    Pattern("netlify-token", EDGE + r"nf[pcoub]_[A-Za-z0-9]{36,}",
            ("nfp_", "nfc_", "nfo_", "nfu_", "nfb_")),
    Pattern("alibaba-key-id", EDGE + r"LTAI[A-Za-z0-9]{16,20}(?![A-Za-z0-9])", ("LTAI",)),
)

_FORGES = (
    Pattern("github-token", r"gh[pousr]_[A-Za-z0-9_]{30,}(?>(?:[.-][A-Za-z0-9_-]{8,})*)",
            ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    Pattern("github-fine-grained-token", r"github_pat_[A-Za-z0-9_]{22,}", ("github_pat_",)),
    Pattern("gitlab-token",
            r"gl(?:pat|dt|rt|rtr|cbt|ptt|soat|ft|imt|agent|ffct|oas)-[A-Za-z0-9_.=-]{20,}"
            r"|GR1348941[A-Za-z0-9_-]{20,}",
            ("glpat-", "gldt-", "glrt", "glcbt-", "glptt-", "glsoat-", "glft-", "glimt-", "glagent-", "glffct-", "gloas-", "GR1348941")),
    Pattern("atlassian-token",
            EDGE + r"A(?:TATT3|TCTT3|TSTT3)[A-Za-z0-9_=-]{40,}|" + EDGE + r"ATBB[A-Za-z0-9]{32}",
            ("ATATT3", "ATCTT3", "ATSTT3", "ATBB")),
    Pattern("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", ("lin_api_", "lin_oauth_")),
    Pattern("npm-token", EDGE + r"npm_[A-Za-z0-9]{36,}", ("npm_",)),
    Pattern("pypi-token", r"pypi-[A-Za-z0-9_-]{50,}", ("pypi-",)),
    Pattern("rubygems-key", r"rubygems_[0-9a-f]{48}", ("rubygems_",)),
    Pattern("nuget-key", EDGE + r"oy2[a-z0-9]{43}(?![A-Za-z0-9])", ("oy2",)),
    Pattern("crates-token", EDGE + r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", ("cio",)),
    Pattern("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}", ("dckr_",)),
    Pattern("artifactory-key", EDGE + r"(?:AKCp|cmVmd)[A-Za-z0-9]{59,}", ("AKCp", "cmVmd")),
    Pattern("sonar-token", EDGE + r"sq[upa]_[0-9a-f]{40}|sonar\.login=(?P<s>[0-9a-f]{40})(?![0-9a-f])", ("squ_", "sqp_", "sqa_", "sonar.login=")),
    Pattern("pulumi-token", EDGE + r"pul-[0-9a-f]{40}", ("pul-",)),
    Pattern("terraform-token", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}",
            (".atlasv1.",)),
    Pattern("vault-token", EDGE + r"hv[sbr]\.[A-Za-z0-9_-]{24,}", ("hvs.", "hvb.", "hvr.")),
    Pattern("doppler-token", EDGE + r"dp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9._-]{40,}",
            ("dp.",)),
    Pattern("onepassword-token",
            r"ops_eyJ[A-Za-z0-9+/=_-]{60,}|"
            + EDGE + r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Za-z0-9])",
            ("ops_eyJ", "A3-")),
    Pattern("tailscale-key", r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{16,}", ("tskey-",)),
    Pattern("age-secret-key", r"(?i:AGE-SECRET-KEY-1[0-9A-Z]{50,})",
            ("age-secret-key-1",), folded=True, begins=True, run=50),
)

_MODELS = (
    Pattern("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}", ("sk-ant-",)),
    Pattern("openai-key",
            EDGE
            + r"sk-(?:(?:proj|svcacct|admin|service|None|or-v1)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})",
            ("sk-",)),
    Pattern("huggingface-token", EDGE + r"(?:hf_|api_org_)[A-Za-z0-9]{30,}",
            ("hf_", "api_org_")),
    Pattern("groq-key", EDGE + r"gsk_[A-Za-z0-9]{40,}", ("gsk_",)),
    Pattern("xai-key", EDGE + r"xai-[A-Za-z0-9]{60,}", ("xai-",)),
    Pattern("perplexity-key", r"pplx-[A-Za-z0-9]{40,}", ("pplx-",)),
    Pattern("replicate-token", EDGE + r"r8_[A-Za-z0-9]{37,}", ("r8_",)),
    Pattern("langsmith-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", ("lsv2_",)),
    Pattern("tavily-key", r"tvly-[A-Za-z0-9-]{20,}", ("tvly-",)),
)

_SERVICES = (
    Pattern("slack-token",
            EDGE + r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{16,}"
            r"|xapp-\d-[A-Za-z0-9-]{16,}|xoxd-[A-Za-z0-9%+/=-]{20,}", ("xox", "xapp-")),
    Pattern("slack-webhook",
            r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Za-z0-9/_-]{20,})",
            ("hooks.slack.com",)),
    Pattern("discord-webhook",
            r"discord(?:app)?\.com/api/(?:v\d{1,3}/)?webhooks/\d{1,24}/(?P<s>[A-Za-z0-9_-]{40,})",
            ("/webhooks/",)),
    Pattern("discord-token",
            r"[MNO](?<![\w.-].)[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
            ()),
    Pattern("telegram-token", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{32,}", (":AA",)),
    Pattern("stripe-key",
            r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}",
            ("_live_", "_test_", "_prod_", "whsec_")),
    Pattern("square-token",
            r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|(?<![A-Za-z0-9_/+-])EAAA[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])",
            ("sq0", "EAAA")),
    Pattern("shopify-token", r"shp(?:at|ca|pa|ss|tka|ua)_[0-9a-fA-F]{32}", ("shp",)),
    Pattern("plaid-token", rf"access-(?:sandbox|development|production)-{HEX_UUID}",
            ("access-",)),
    Pattern("facebook-token", r"(?<![A-Za-z0-9_/+-])EAA[A-Za-z0-9]{90,}", ("EAA",)),
    Pattern("sendgrid-key", EDGE + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}", ("SG.",)),
    Pattern("mailgun-key", EDGE + r"(?:pub)?key-[0-9a-f]{32}(?![0-9a-z])", ("key-",)),
    Pattern("mailgun-api-key",
            r"(?<![0-9a-f])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9a-f-])",
            ("mailgun", "api:"), folded=True, run=50),
    Pattern("mailchimp-key", r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}(?!\d)", ("-us",)),
    Pattern("twilio-key",
            EDGE
            + r"SK[0-9a-f]{32}(?![0-9a-zA-Z])|AC[0-9a-f]{32}\W{1,4}(?P<s>[0-9a-f]{32})(?![0-9a-f])",
            ("SK", "AC")),
    Pattern("resend-key", EDGE + r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{16,}", ("re_",)),
    Pattern("postman-key", r"PM(?:AK|AT)-[0-9A-Za-z]{24,26}(?:-[0-9a-f]{34})?",
            ("PMAK-", "PMAT-")),
    Pattern("figma-token", r"fig[duor]_[A-Za-z0-9_-]{30,}",
            ("figd_", "figu_", "figo_", "figr_")),
    Pattern("notion-token",
            WORD_EDGE + r"(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})(?![A-Za-z0-9_])",
            ("secret_", "ntn_")),
    Pattern("airtable-token", EDGE + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", ("pat",)),
    Pattern("dropbox-token", EDGE + r"sl\.(?:u\.)?[A-Za-z0-9_-]{130,}", ("sl.",)),
    Pattern("sentry-token", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}", ("sntrys_", "sntryu_")),
    Pattern("grafana-token",
            r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|" + EDGE + r"glc_[A-Za-z0-9+/=]{32,}|" + EDGE
            + r"eyJrIjoi[A-Za-z0-9+/=]{30,}", ("glsa_", "glc_", "eyJrIjoi")),
    Pattern("newrelic-key",
            r"NRAK-[A-Z0-9]{27}|NRI[IQ]-[A-Za-z0-9_-]{32}|NRJS-[0-9a-f]{19}|(?<![0-9a-f])[0-9a-f]{36}NRAL",
            ("NRAK-", "NRII-", "NRIQ-", "NRJS-", "NRAL")),
    Pattern("datadog-key",
            r"(?i:datadog|(?<![A-Za-z])dd|(?<=\\[nrt])dd)[A-Za-z_ -]{0,20}(?i:key)" + _GAP
            + r"(?P<s>[0-9a-f]{32,40})(?![0-9a-f])",
            ("dd_", "dd-", "dd api", "datadog"), folded=True, begins=True, run=32),
    Pattern("supabase-key", EDGE + r"sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,}",
            ("sbp_", "sb_secret_")),
    Pattern("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,}", ("pscale_",)),
)

TOKENS: tuple[Pattern, ...] = (*_CLOUDS, *_FORGES, *_MODELS, *_SERVICES)
"""Secrets that are known by their issuer's prefix or shape."""


ISSUERS: tuple[Pattern, ...] = (
    Pattern("sourcegraph-token",
            EDGE + r"sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}(?![0-9a-z])", ("sgp_",)),
    Pattern("buildkite-token", EDGE + r"bk[a-z]a_[0-9a-f]{40}", ("bkua_", "bkaa_", "bkra_")),
    Pattern("circleci-token", EDGE + r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{16,30}_[0-9a-f]{40}",
            ("CCIPAT_", "CCIPRJ_")),
    Pattern("vercel-token", EDGE + r"(?:vc[piark]_[A-Za-z0-9_-]{24,}|vercel_(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![A-Za-z0-9_]))",
            ("vcp_", "vci_", "vca_", "vercel_")),
    Pattern("render-key", EDGE + r"rnd_[A-Za-z0-9]{28,}", ("rnd_",)),
    Pattern("neon-key", EDGE + r"napi_[a-z0-9]{48,}", ("napi_",)),
    Pattern("prefect-key", EDGE + r"pn[ub]_[A-Za-z0-9]{36}", ("pnu_", "pnb_")),
    Pattern("openshift-token", EDGE + r"sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",
            ("sha256~",)),
    Pattern("dynatrace-token", EDGE + r"dt0[a-z]\d{2}\.[A-Z0-9]{20,28}\.[A-Z0-9]{64}",
            ("dt0c01.", "dt0s0", "dt0a01.")),
    Pattern("yandex-key",
            EDGE
            + r"(?:AQVN[A-Za-z0-9_-]{35,38}|y[0-3]_[A-Za-z0-9_-]{50,}|t1\.[A-Za-z0-9_=-]{40,}\.[A-Za-z0-9_=-]{40,})",
            ("AQVN", "y0_", "y1_", "y2_", "y3_", "t1.")),
    Pattern("yandex-aws-key", EDGE + r"YC(?=[A-Za-z_-]{0,37}\d)[A-Za-z0-9_-]{38}(?![A-Za-z0-9_-])", ("YC",)),
    Pattern("elevenlabs-key", EDGE + r"sk_[0-9a-f]{48}(?![0-9a-z])", ("sk_",)),
    Pattern("langfuse-key", EDGE + rf"sk-lf-{HEX_UUID}", ("sk-lf-",)),
    Pattern("nvidia-key", EDGE + r"nvapi-[A-Za-z0-9_-]{40,}", ("nvapi-",)),
    Pattern("fireworks-key", EDGE + r"fw_[A-Za-z0-9]{22,24}(?![A-Za-z0-9_])", ("fw_",)),
    Pattern("pinecone-key", EDGE + r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}", ("pcsk_",)),
    Pattern("hubspot-token", EDGE + rf"pat-(?:na|eu|ap)\d-{HEX_UUID}",
            ("pat-na", "pat-eu", "pat-ap")),
    Pattern("launchdarkly-key", WORD_EDGE + rf"(?:sdk|api|mob)-{HEX_UUID}",
            ("sdk-", "api-", "mob-")),
    Pattern("shippo-token", EDGE + r"shippo_(?:live|test)_[0-9a-f]{40}", ("shippo_",)),
    Pattern("asana-token",
            r"(?:(?<![\w/.-])|(?<=\\[nrt]))[12](?:/|%2F)\d{10,20}(?:(?:/|%2F)\d{10,20})?(?::|%3A)[0-9a-f]{32}(?![0-9a-f])",
            ("1/", "2/", "1%2F", "2%2F")),
    Pattern("flutterwave-key", EDGE + r"FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,40}(?:-X)?",
            ("FLWSECK",)),
    Pattern("easypost-key", EDGE + r"EZ[AT]K[A-Za-z0-9]{54}", ("EZAK", "EZTK")),
    Pattern("duffel-token", EDGE + r"duffel_(?:test|live)_[A-Za-z0-9_=-]{40,}", ("duffel_",)),
    Pattern("sendinblue-key", EDGE + r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}", ("xkeysib-",)),
    Pattern("firebase-server-key", r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}",
            (":APA91b",)),
    Pattern("typeform-token", EDGE + r"tfp_[A-Za-z0-9_.=-]{40,}", ("tfp_",)),
    Pattern("readme-key", EDGE + r"rdme_[a-z0-9]{70}", ("rdme_",)),
    Pattern("contentful-token", EDGE + r"CFPAT-[A-Za-z0-9_-]{40,}", ("CFPAT-",)),
    Pattern("posthog-key", EDGE + r"ph[xsr]_[A-Za-z0-9]{32,}", ("phx_", "phs_", "phr_")),
    Pattern("frameio-token", EDGE + r"fio-u-[A-Za-z0-9_=-]{60,}", ("fio-u-",)),
    Pattern("infracost-key", EDGE + r"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])", ("ico-",)),
    Pattern("firecrawl-key", EDGE + r"fc-[0-9a-f]{32}(?![0-9a-zA-Z])", ("fc-",)),
    Pattern("e2b-key", EDGE + r"e2b_[0-9a-f]{40}(?![0-9a-zA-Z])", ("e2b_",)),
    Pattern("context7-key", EDGE + r"ctx7sk-[A-Za-z0-9-]{24,}", ("ctx7sk-",)),
    Pattern("cursor-key", EDGE + r"(?:key|crsr)_[0-9a-f]{64}(?![0-9a-zA-Z])", ("key_", "crsr_")),
    Pattern("braintree-token", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}",
            ("access_token$",), folded=True, begins=True),
    Pattern("opsgenie-key", rf"GenieKey\s{{1,4}}(?P<s>{HEX_UUID})", ("geniekey ",), folded=True, run=30),
    Pattern("snyk-token", r"snyk_(?:uat|sat)\.[0-9a-f]{8}\.[A-Za-z0-9._-]{40,}", ("snyk_uat.", "snyk_sat.")),
    Pattern("snyk-key", rf"snyk[^\n|;&]{{0,60}}\bapi=(?P<s>{HEX_UUID})", ("snyk",), folded=True, begins=True, run=36),
    Pattern("tencent-key-id", EDGE + r"AKID(?=[A-Za-z]{0,31}\d)[A-Za-z0-9]{32}(?![A-Za-z0-9])", ("AKID",)),
    Pattern("brave-key", EDGE + r"BSA(?=[A-Za-z_-]{0,26}\d)[A-Za-z0-9_-]{27,28}(?![A-Za-z0-9_-])", ("BSA",)),
    Pattern("jina-key", EDGE + r"jina_[0-9a-f]{32}[A-Za-z0-9_-]{20,}", ("jina_",)),
    Pattern("voyage-key", WORD_EDGE + r"pa-(?=[A-Za-z_-]{0,42}\d)[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", ("pa-",)),
    Pattern("cerebras-key", WORD_EDGE + r"csk-[a-z0-9]{48}(?![A-Za-z0-9])", ("csk-",)),
    Pattern("together-key", EDGE + r"tgp_v1_[A-Za-z0-9_-]{40,}", ("tgp_v1_",)),
    Pattern("unblocked-token", EDGE + r"(?:ubdp|tpuf)_[A-Za-z0-9]{32,}", ("ubdp_", "tpuf_")),
    Pattern("settlemint-token", EDGE + r"sm_[aps]at_[A-Za-z0-9]{16}(?![A-Za-z0-9_])", ("sm_aat_", "sm_pat_", "sm_sat_")),
    Pattern("harness-token", EDGE + r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}", ("pat.", "sat.")),
    Pattern("intra42-secret", EDGE + r"s-s4t2(?:ud|af)-[0-9a-f]{64}", ("s-s4t2",)),
    Pattern("clojars-token", EDGE + r"(?i:CLOJARS_)[A-Za-z0-9]{60}", ("CLOJARS_", "clojars_")),
    Pattern("defined-networking-token", EDGE + r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}", ("dnkey-",)),
    Pattern("adobe-secret", EDGE + r"p8e-[A-Za-z0-9]{32}(?![A-Za-z0-9])", ("p8e-",)),
    Pattern("clickhouse-key", EDGE + r"4b1d(?=[0-9a-z]{0,37}[A-Z])[A-Za-z0-9]{38}(?![A-Za-z0-9])", ("4b1d",)),
    Pattern("scalingo-token", EDGE + r"tk-us-[A-Za-z0-9_-]{48}", ("tk-us-",)),
    Pattern("maxmind-key", EDGE + r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9])", ("_mmk",)),
    Pattern("teams-webhook",
            rf"webhook\.office\.com/webhookb2/(?P<s>{HEX_UUID}@{HEX_UUID}/IncomingWebhook/[0-9a-f]{{32}}/{HEX_UUID})",
            ("webhook.office.com",)),
    Pattern("wakatime-key", EDGE + rf"waka_{HEX_UUID}", ("waka_",)),
    Pattern("apify-token", EDGE + r"apify_api_[A-Za-z0-9]{30,}", ("apify_api_",)),
    Pattern("runpod-key", EDGE + r"rpa_[A-Z0-9]{36,}", ("rpa_",)),
    Pattern("mailersend-token", EDGE + r"mlsn\.[0-9a-f]{64}", ("mlsn.",)),
    Pattern("facebook-app-token", r"(?<![\w|])\d{15,16}(?:\||%7C)[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])", ("|", "%7C"),
            folded=True, run=27),
    Pattern("authress-key",
            EDGE + r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}",
            (".acc_", ".acc-")),
    Pattern("nostr-key", EDGE + r"nsec1[a-zA-Z0-9]{58}(?![A-Za-z0-9])", ("nsec1",)),
    Pattern("bitcoin-extended-key", EDGE + r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}", ("prv",)),
    Pattern("jwt-base64", EDGE + r"ZXlK[A-Za-z0-9+/_-]{40,}={0,2}", ("ZXlK",)),
    Pattern("octopus-key", EDGE + r"API-[A-Z0-9]{25,32}(?![A-Za-z0-9])", ("API-",)),
)
"""Tried after `TOKENS`."""
# fmt: on
