"""Secrets to plant, and look-alikes to spare: one row a pattern. Drawn from a fixed seed, so that
no scanner of repositories takes these files for a leak."""

import random
import string
from typing import NamedTuple

LOWER_HEX = "0123456789abcdef"
WORD = string.ascii_letters + string.digits
URL = WORD + "-_"


def draw(length, alphabet=WORD, seed=7):
    """The same characters every time, none of them chosen by a person."""
    lot = random.Random(f"{length}/{alphabet}/{seed}")  # noqa: S311  # repeatable, not secret
    return "".join(lot.choice(alphabet) for _ in range(length))


def uuid(seed=7):
    return "-".join(draw(n, LOWER_HEX, seed) for n in (8, 4, 4, 4, 12))


class Row(NamedTuple):
    """`before` + `secret` + `after` loses the secret; `spared` stays as it is."""

    name: str
    secret: str
    spared: str
    before: str = ""
    after: str = ""

    @property
    def text(self):
        return self.before + self.secret + self.after


HEX32, HEX40, HEX64 = (draw(n, LOWER_HEX) for n in (32, 40, 64))
UPPER = string.ascii_uppercase + string.digits
JSON_PART = "ey" + "J" + draw(30)

TOKEN_ROWS = [
    Row(
        "aws-access-key-id", "AK" + "IA" + draw(16, UPPER), "AKIA is a prefix; AKIAFOO is too short"
    ),
    Row(
        "aws-access-key-id", "AS" + "IA" + draw(16, UPPER), "EURASIAN and ASIA-PACIFIC-SOUTHEAST-2"
    ),
    Row("aws-secret-key", draw(39) + "7", "aws secret key: see the wiki", "SecretAccessKey: "),
    Row("aws-bare-secret-key", draw(36) + "/a7Z", f"aws commit {HEX40}", "for aws use ", " then"),
    Row("aws-session-token", "IQoJb3JpZ2lu" + "X2Vj" + draw(80), "IQoJb3JpZ2luX2Vj"),
    Row("aws-bedrock-key", "AB" + "SK" + draw(70), "ABSKIP_THE_REST_OF_THIS_TEST_FILE"),
    Row("gcp-api-key", "AI" + "za" + draw(35, URL), "AIzaShort"),
    Row("gcp-private-key-id", HEX40, '"private_key_id": null', '"private_key_id": "', '"'),
    Row("google-oauth-token", "ya" + "29." + draw(60, URL), "ya29.short"),
    Row("google-refresh-token", "1/" + "/0" + draw(40, URL), "http://1//0 and 1//01"),
    Row("google-client-secret", "GOC" + "SPX-" + draw(28, URL), "GOCSPX-short"),
    Row(
        "azure-storage-key",
        draw(86) + "==",
        "AccountKey=${STORAGE_KEY}",
        "AccountName=x;AccountKey=",
    ),
    Row(
        "azure-sas",
        draw(40) + "%3D",
        "https://x.net/?sig=short&sv=1",
        "https://x.net/b?sv=2022&sig=",
    ),
    Row("azure-client-secret", draw(3) + "8Q" + "~" + draw(34), "IQ~range"),
    Row("azure-key", draw(52) + "JQQ" + "J9" + draw(27), "JQQJ99"),
    Row("azure-devops-token", draw(76) + "AZ" + "DO" + draw(4), "AZDO_PERSONAL"),
    Row("cloudflare-token", "cf" + "ut_" + draw(40), "cfut_short"),
    Row(
        "cloudflare-key",
        draw(37, LOWER_HEX + "gh"),
        "cloudflare: the key is in vault",
        "CLOUDFLARE_KEY=",
    ),
    Row("digitalocean-token", "dop" + "_v1_" + HEX64, "dop_v1_abc"),
    Row("heroku-key", uuid(), f"heroku release {uuid()}", "HEROKU_API_KEY: "),
    Row("heroku-key", "HR" + "KU-" + draw(50, URL), "HRKU-short"),
    Row("databricks-token", "da" + "pi" + HEX32, "dapi_client.connect"),
    Row("fly-token", "fm" + "2_" + draw(60), "fm2_short"),
    Row("netlify-token", "nf" + "p_" + draw(36), "nfp_short"),
    Row("alibaba-key-id", "LT" + "AI" + draw(20), "LTAIPEI"),
    *(Row("github-token", f"gh{c}" + "_" + draw(36), f"gh{c}_short") for c in "pousr"),
    Row("github-fine-grained-token", "github" + "_pat_" + draw(82, WORD + "_"), "github_pat_doc"),
    *(
        Row("gitlab-token", f"gl{kind}" + "-" + draw(20, URL), f"gl{kind}-short")
        for kind in ("pat", "dt", "rt", "cbt", "ptt", "soat")
    ),
    Row("atlassian-token", "ATA" + "TT3x" + draw(80, URL), "ATATT3"),
    Row("linear-key", "lin" + "_api_" + draw(40), "lin_api_version"),
    Row("npm-token", "np" + "m_" + draw(36), "npm_config_registry_of_this_very_project"),
    Row("pypi-token", "py" + "pi-AgEI" + draw(80, URL), "pypi-mirror-of-the-office"),
    Row("rubygems-key", "ruby" + "gems_" + draw(48, LOWER_HEX), "rubygems_mirror"),
    Row("nuget-key", "oy" + "2" + draw(43, string.ascii_lowercase), "oy2go"),
    Row("crates-token", "ci" + "o" + draw(32), "cio.readthedocs.io/en/latest/index"),
    Row("docker-token", "dckr" + "_pat_" + draw(27, URL), "dckr_pat_x"),
    Row("artifactory-key", "AK" + "Cp" + draw(69), "AKCpRoduct"),
    Row("sonar-token", "sq" + "u_" + HEX40, "squ_are"),
    Row("pulumi-token", "pu" + "l-" + HEX40, "pul-request"),
    Row(
        "terraform-token", draw(14) + ".atlas" + "v1." + draw(67, URL), "see .atlasv1. in the docs"
    ),
    Row("vault-token", "hv" + "s." + draw(40, URL), "hvs.example.com"),
    Row("doppler-token", "dp" + ".st." + draw(43), "dp.pt.example.com"),
    Row("onepassword-token", "ops" + "_ey" + "J" + draw(90), "ops_eyJ"),
    Row("tailscale-key", "ts" + "key-auth-" + draw(24), "tskey-auth-x"),
    Row("age-secret-key", "AGE-SECRET" + "-KEY-1" + draw(58, UPPER), "AGE-SECRET-KEY-1..."),
    Row(
        "anthropic-key",
        "sk-" + "ant-api03-" + draw(80, URL) + "-" + draw(10) + "_AA",
        "sk-ant-api03-",
    ),
    Row("openai-key", "sk" + "-" + draw(48), "sk-learn"),
    Row("openai-key", "sk-" + "proj-" + draw(60, URL), "task-project-board-of-the-whole-team"),
    Row("openai-key", "sk-" + "svcacct-" + draw(60, URL), "risk-svcacct-model"),
    Row("huggingface-token", "h" + "f_" + draw(34, string.ascii_letters), "hf_hub_download"),
    Row("groq-key", "gs" + "k_" + draw(52), "gsk_short"),
    Row("xai-key", "xa" + "i-" + draw(80), "xai-org/grok"),
    Row("perplexity-key", "pp" + "lx-" + draw(48), "pplx-api"),
    Row("replicate-token", "r" + "8_" + draw(37), "r8_unorm"),
    Row("langsmith-key", "lsv2" + "_pt_" + HEX32 + "_" + HEX40[:10], "lsv2_pt_x"),
    Row("tavily-key", "tv" + "ly-" + draw(32), "tvly-short"),
    *(
        Row("slack-token", f"xox{c}" + "-" + draw(12, "0123456789") + "-" + draw(24), f"xox{c}-x")
        for c in "abeoprs"
    ),
    Row("slack-token", "xap" + "p-1-" + draw(40), "xapp-1-x"),
    Row(
        "slack-webhook",
        "T" + draw(8) + "/B" + draw(8) + "/" + draw(24),
        "https://hooks.slack.com/services/help",
        "https://hooks.slack.com/services/",
    ),
    Row(
        "discord-webhook",
        draw(68, URL),
        "https://discord.com/api/webhooks/1234/short",
        "https://discord.com/api/webhooks/123456789012345678/",
    ),
    Row(
        "discord-token",
        "M" + draw(23) + "." + draw(6) + "." + draw(38),
        "Module.submod.function_name",
    ),
    Row("telegram-token", "123456789" + ":AA" + draw(33, URL), "12:AA and 123456789:AAshort"),
    Row("stripe-key", "sk" + "_live_" + draw(24), "pk" + "_live_" + "short"),
    Row("stripe-key", "rk" + "_live_" + draw(24), "rk_live_x"),
    Row("stripe-key", "sk" + "_test_" + draw(24), "disk_test_results"),
    Row("stripe-key", "wh" + "sec_" + draw(32), "whsec_short"),
    Row("square-token", "sq0" + "atp-" + draw(22, URL), "sq0atp-x"),
    Row("shopify-token", "shp" + "at_" + HEX32, "shpat_short"),
    Row("plaid-token", "access-" + "sandbox-" + uuid(), "access-sandbox-only"),
    Row("facebook-token", "EA" + "A" + draw(120), "EAAGER_BEAVERS_OF_THE_NORTH"),
    Row(
        "sendgrid-key",
        "S" + "G." + draw(22, URL) + "." + draw(43, URL),
        "SG.com.example.package.of.ours",
    ),
    Row("mailgun-key", "ke" + "y-" + HEX32, "key-value-store-of-the-whole-company"),
    Row(
        "mailgun-api-key",
        HEX32 + "-" + HEX40[:8] + "-" + HEX64[:8],
        f"mailgun {HEX32}-suffix",
        "mailgun: ",
    ),
    Row("mailchimp-key", HEX32 + "-u" + "s12", f"{HEX32}-user"),
    Row("twilio-key", "S" + "K" + HEX32, "SKIPPED " + "A" + "C" + HEX32),
    Row("twilio-key", draw(32, LOWER_HEX, seed=8), "ACCOUNT:x", "curl AC" + HEX32 + ":"),
    Row("resend-key", "r" + "e_" + draw(8) + "_" + draw(24), "re_compiled_pattern_of_words"),
    Row(
        "postman-key", "PM" + "AK-" + draw(24, LOWER_HEX) + "-" + draw(34, LOWER_HEX), "PMAK-short"
    ),
    Row("figma-token", "fi" + "gd_" + draw(40, URL), "figd_short"),
    Row("notion-token", "sec" + "ret_" + draw(43), "secret_santa_of_the_department_is_someone"),
    Row("notion-token", "nt" + "n_" + draw(46), "ntn_short"),
    Row("airtable-token", "pa" + "t" + draw(14) + "." + HEX64, "path.to.something.very.long"),
    Row("dropbox-token", "s" + "l." + draw(140, URL), "sl.wikipedia.org/wiki/something_long"),
    Row("sentry-token", "sn" + "trys_" + draw(90), "sntrys_short"),
    Row("grafana-token", "gl" + "sa_" + draw(32) + "_" + HEX40[:8], "glsa_short"),
    Row("grafana-token", "gl" + "c_" + draw(60), "glc_lut"),
    Row("newrelic-key", "NR" + "AK-" + draw(27, UPPER), "NRAK-short"),
    Row("datadog-key", HEX32, f"datadog trace {HEX32}", "DD_API_KEY="),
    Row("supabase-key", "sb" + "p_" + HEX40, "sbp_short"),
    Row("planetscale-token", "pscale" + "_tkn_" + draw(43), "pscale_tkn_x"),
]

ISSUER_ROWS = [
    Row("sourcegraph-token", "sg" + "p_" + HEX40, "sgp_4fe2a1"),
    Row("sourcegraph-token", "sg" + "p_" + HEX64[:16] + "_" + HEX40, "sgp_local_branch"),
    Row("buildkite-token", "bk" + "ua_" + HEX40, "bkua_short"),
    Row("circleci-token", "CCI" + "PAT_" + draw(22) + "_" + HEX40, "CCIPAT_short"),
    Row("vercel-token", "vc" + "p_" + draw(40), "vcp_short"),
    Row("render-key", "rn" + "d_" + draw(32), "rnd_uniform"),
    Row("neon-key", "na" + "pi_" + draw(64, LOWER_HEX + "ghijk"), "napi_module_version"),
    Row("prefect-key", "pn" + "u_" + draw(36), "pnu_short"),
    Row("openshift-token", "sha" + "256~" + draw(43, URL), f"sha256:{HEX64}"),
    Row(
        "dynatrace-token", "dt" + "0c01." + draw(24, UPPER) + "." + draw(64, UPPER), "dt0c01.PUBLIC"
    ),
    Row("yandex-key", "AQ" + "VN" + draw(36, URL), "AQVN"),
    Row("yandex-key", "y" + "0_" + draw(55, URL), "y0_offset_of_the_viewport_in_pixels"),
    Row("elevenlabs-key", "s" + "k_" + HEX64[:48], f"disk_{HEX40[:10]}"),
    Row("langfuse-key", "sk-" + "lf-" + uuid(), f"pk-lf-{uuid()}"),
    Row("nvidia-key", "nv" + "api-" + draw(64, URL), "nvapi-short"),
    Row("fireworks-key", "f" + "w_" + draw(24), "fw_3z"),
    Row("pinecone-key", "pc" + "sk_" + draw(6) + "_" + draw(63), "pcsk_x"),
    Row("hubspot-token", "pa" + "t-na1-" + uuid(), "pat-na1-region"),
    Row("launchdarkly-key", "sd" + "k-" + uuid(), f"build-sdk-{uuid()}"),
    Row("shippo-token", "shippo" + "_live_" + HEX40, "shippo_live_mode"),
    Row("asana-token", "2/" + "1234567890123456/1234567890654321:" + HEX32, "1/2/2026 10:30"),
    Row("flutterwave-key", "FLW" + "SECK-" + HEX32 + "-X", "FLWSECK-short"),
    Row("easypost-key", "EZ" + "AK" + draw(54), "EZAKIEL"),
    Row("duffel-token", "duffel" + "_test_" + draw(43, URL), "duffel_test_run"),
    Row("sendinblue-key", "xkey" + "sib-" + HEX64 + "-" + draw(16), "xkeysib-short"),
    Row("firebase-server-key", "AAAA" + draw(7) + ":APA" + "91b" + draw(134, URL), ":APA91b"),
    Row("typeform-token", "tf" + "p_" + draw(59, URL), "tfp_short"),
    Row("readme-key", "rd" + "me_" + draw(70, LOWER_HEX + "xyz"), "rdme_openapi"),
    Row("contentful-token", "CF" + "PAT-" + draw(43, URL), "CFPAT-short"),
    Row("posthog-key", "ph" + "x_" + draw(43), "phx_router"),
    Row("frameio-token", "fio" + "-u-" + draw(64, URL), "fio-u-turn"),
    Row("infracost-key", "ic" + "o-" + draw(32), "ico-arrow-left-of-the-second-menu"),
    Row("octopus-key", "AP" + "I-" + draw(26, UPPER), "API-VERSION-OF-THE-SERVER"),
]

SHAPE_ROWS = [
    Row("jwt", JSON_PART + "." + JSON_PART + "." + draw(43, URL), "eyJust.kidding.now"),
    Row(
        "base64-private-key",
        "LS0tLS1CRU" + "dJTiBQUklW" + draw(80),
        "LS0tLS1CRUdJTiBDRVJU" + draw(80),
    ),
    Row("putty-private-key", draw(60), "PuTTY is a client", "PuTTY-User-Key-File-2: ssh-rsa\n"),
    Row(
        "database-url",
        "pa/s5:w@rd",
        "postgres://localhost:5432/app@x",
        "postgres://u:",
        "@db:5432/app",
    ),
    Row(
        "database-url",
        draw(12),
        "mongodb+srv://${USER}:${PASS}@host",
        "mongodb+srv://u:",
        "@h/?w=1",
    ),
    Row("database-url", draw(12), "redis://:<password>@host", "redis://:", "@cache:6379"),
    Row("database-url", draw(12), "amqp://host:5672/%2f", "amqp://u:", "@mq"),
    Row("database-url", draw(12), "mysql://root@localhost/x", "mysql+pymysql://u:", "@h/db"),
    Row(
        "url-password",
        draw(12),
        "http://localhost:8080/@scope/package",
        "https://user:",
        "@example.com/x",
    ),
    Row(
        "url-password",
        draw(12),
        "https://{user}:{password}@host",
        "https://user:",
        "@example.com/x",
    ),
    Row("url-token", draw(32), "https://user@example.com", "https://", "@github.com/x/y"),
    Row(
        "encoded-url-password",
        draw(12),
        "u=https%3A%2F%2Fexample.com%3A8080%2Fx%40y",
        "?next=postgres%3A%2F%2Fapp%3A",
        "%40db%3A5432%2Fapp",
    ),
    Row(
        "signed-url",
        HEX64,
        "X-Amz-SignedHeaders=host and x-amz-signature=${SIGNED_BY_THE_WORKER}",
        "https://b.s3.amazonaws.com/k?X-Amz-Signature=",
    ),
    Row("password-hash", draw(16) + "$" + draw(86), "costs $6$ or $5$ a month", "root:$6" + "$"),
    Row("authorization", draw(30), "Authorization: Bearer ${TOKEN}", "Authorization: Bearer "),
    Row(
        "authorization",
        draw(24) + "==",
        'h = {"Authorization": f"Bearer {token}"}',
        "authorization: Basic ",
    ),
    Row(
        "authorization",
        draw(20),
        "authorization: required",
        "curl -H 'Authorization: Token ",
        "' x",
    ),
    Row("authorization-value", draw(20) + "1", "Authorization: none", "Authorization: "),
    Row("bearer-token", draw(29) + "1", "the bearer of this message", "use bearer "),
    Row("cookie", "sid=" + draw(20) + "; theme=dark", "a cookie: see RFC 6265", "Cookie: "),
    Row("cookie", "sid=" + draw(20) + "; Path=/", "cookies are small files", "set-cookie: "),
    Row("curl-user", draw(10), "docker run --user 1000:1000 x", "curl -u user:", " https://x"),
    Row("cli-password", draw(10), "mysql -u root -p", "mysql -u root -p", " app"),
    Row("cli-password", draw(10), "sshpass -p $PASS ssh x", "sshpass -p '", "' ssh x"),
    Row(
        "netrc",
        draw(10),
        "machine learning: login, then password reset",
        "machine h login u password ",
    ),
    Row(
        "sql-password",
        draw(10),
        "CREATE ROLE a WITH PASSWORD '***'",
        "ALTER ROLE a WITH PASSWORD '",
        "'",
    ),
    Row("xml-secret", draw(10), "<password>${db.password}</password>", "<password>", "</password>"),
    Row("named-value", draw(10), "- name: DB_HOST\n  value: x", "- name: DB_PASSWORD\n  value: "),
]

ROWS = TOKEN_ROWS + ISSUER_ROWS + SHAPE_ROWS


def names(rows):
    """What the tests of a table are called: each row once."""
    return [f"{row.name}-{number}" for number, row in enumerate(rows)]
