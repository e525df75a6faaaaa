"""What a later statement of the user's ends in other words: it denies, drops, passes over or allows what an earlier one says."""

from memd.belief.decide import changes_sentence, find_change
from memd.models import Kind
from tests.factories import make_summary
from tests.tables import every_row

ENDED = (
    ("Always store measurements in InfluxDB.", "We don't store measurements in InfluxDB any more."),
    ("Never touch the tariff table during the day.", "Touching the tariff table during the day is okay from now on."),
    ("From now on use Caddy instead of nginx.", "We decided against Caddy after all, we use nginx again."),
    ("We decided to use MQTT for the sensors.", "We no longer use MQTT for the sensors, they speak CoAP."),
    ("From now on sign the releases with GPG.", "From now on sign the releases with sigstore instead of GPG."),
    ("Always run the migrations by hand.", "The migrations are not run by hand any more."),
    ("We decided to host the docs on Confluence.", "Confluence is gone, we host the docs on GitLab Pages from now on."),
    ("Always ask me before installing a package.", "You don't need to ask me before installing a package any more."),
    ("We decided to use Sentry for the error reports.", "We stopped using Sentry for the error reports."),
    ("We decided to use Jest for the unit tests.", "We switched from Jest to Vitest for the unit tests."),
    ("We decided to use Elasticsearch for the product search.", "We've replaced Elasticsearch with Meilisearch for the product search."),
    ("Never log customer names.", "From now on log customer names again, legal allowed it."),
    ("We decided to use Vuex for the shared state.", "We decided not to use Vuex after all."),
    ("We decided to publish the packages on Artifactory because it is in the house.", "We're dropping Artifactory, from now on publish the packages on Gitea."),
    ("From now on test with `npm run unit` only.", "From now on test with `npm run all` only."),
    ("Never merge without a review.", "From now on you may merge without a review."),
    ("We decided to render charts with D3.", "We abandoned D3, charts are drawn with Vega now."),
    ("Never use recursion in the parser.", "Recursion in the parser is allowed again."),
    ("We decided to use Terraform for the cloud accounts.", "Forget Terraform, we use Pulumi for the cloud accounts from now on."),
    ("From now on write the reports in Dutch.", "From now on write the reports in English again."),
    ("Never deploy on a Friday.", "Deploying on a Friday is fine again."),
    ("Always squash commits before merging.", "Don't squash commits before merging any more."),
    ("We decided to keep the translations in Crowdin.", "We got rid of Crowdin, the translations are in the repo now."),
    ("From now on format the code with black.", "Use ruff instead of black from now on."),
    ("We decided to use Stripe for the payments.", "We don't use Stripe for the payments any more, it's Adyen now."),
    ("Never commit generated files.", "Committing generated files is allowed from now on."),
    ("Always rebase before pushing.", "No need to rebase before pushing any more."),
    ("We decided to draw the maps with Leaflet.", "We're ditching Leaflet and use MapLibre."),
    ("We decided to send alerts through PagerDuty.", "Alerts no longer go through PagerDuty."),
    ("We decided to build the images with Kaniko.", "We moved from Kaniko to BuildKit."),
    ("Never use the word master in the docs.", "Using the word master in the docs is okay again."),
    ("We decided against Docker for the lab machines.", "We use Docker for the lab machines after all."),
    ("We decided to parse the mails with regexes.", "Stop parsing the mails with regexes, use the email package from now on."),
    ("We agreed to release every Tuesday.", "We don't release every Tuesday any more."),
    ("We decided to use Kafka for the event bus, because we know Kafka.", "We don't use Kafka for the event bus any more, we use NATS."),
    ("We decided to use Kafka for the event bus, because we know Kafka.", "We decided not to use Kafka after all."),
    ("Never restart the node on weekends.", "Restarting the node on weekends is fine from now on."),
    ("We decided to send mails over Postmark because SES is blocked.", "We're dropping Postmark, from now on use Mailgun instead of Postmark."),
    ("Use CAN instead of RS-485 for the bus.", "We decided against CAN after all, we use RS-485 again."),
    ("From now on build with `make fast` only.", "From now on build with `make slow` only."),
)  # fmt: skip
LEFT = (
    ("Always store measurements in InfluxDB.", "We don't store raw images in InfluxDB."),
    ("Never touch the tariff table during the day.", "Touching the holiday table during the day is okay from now on."),
    ("From now on use Caddy instead of nginx.", "Don't use the nginx config of the old server any more."),
    ("We decided to use MQTT for the sensors.", "We no longer use MQTT for the dashboards."),
    ("From now on sign the releases with GPG.", "From now on sign the tags, too."),
    ("Always run the migrations by hand.", "The seed scripts are not run by hand any more."),
    ("We decided to host the docs on Confluence.", "The Confluence search is gone, look for the page in the menu."),
    ("Always ask me before installing a package.", "You don't need to ask me about dev dependencies any more."),
    ("We decided to use Sentry for the error reports.", "We stopped using Sentry for the performance traces."),
    ("We decided to use Jest for the unit tests.", "Maybe we should not use Jest any more."),
    ("We decided to use Elasticsearch for the product search.", "We don't use Elasticsearch for the logs any more."),
    ("Never log customer names.", "From now on log the customer ids again."),
    ("We decided to use Vuex for the shared state.", "We decided not to use Vuex in the admin widget."),
    ("We decided to publish the packages on Artifactory because it is in the house.", "We're dropping support for Node 16."),
    ("From now on test with `npm run unit` only.", "Run `npm run all` once now."),
    ("Never merge without a review.", "Merge this one without a review, it is only a typo."),
    ("We decided to render charts with D3.", "Should we drop D3 and use Vega?"),
    ("Never use recursion in the parser.", "Recursion in the tests is allowed."),
    ("We decided to use Terraform for the cloud accounts.", "Forget the Terraform warning, go on."),
    ("From now on write the reports in Dutch.", "From now on write the commit messages in English."),
    ("Never deploy on a Friday.", "Deploying to staging on a Friday is fine."),
    ("Always squash commits before merging.", "Don't squash this branch, I want to see the steps."),
    ("We decided to keep the translations in Crowdin.", "Drop the Crowdin badge from the README."),
    ("From now on format the code with black.", "Use a white background instead of black in the charts."),
    ("We decided to use Stripe for the payments.", "We don't use Stripe for the donations."),
    ("Never commit generated files.", "Committing the lock file is fine."),
    ("Always rebase before pushing.", "Don't rebase now, I am in the middle of something."),
    ("We decided to draw the maps with Leaflet.", "Drop the Leaflet attribution in the corner."),
    ("From now on use pnpm for the frontend.", "The backend doesn't use pnpm."),
    ("We decided to send alerts through PagerDuty.", "Stop the PagerDuty test alert."),
    ("Always keep two replicas of the cache.", "The replicas of the search index are not needed any more."),
    ("Use feature branches, never commit to main.", "Committing to my fork's main is fine."),
    ("We decided to build the images with Kaniko.", "We moved the Kaniko config to the infra repo."),
    ("From now on run the e2e tests with `yarn e2e:chrome`.", "Run the unit tests with `yarn unit`."),
    ("Never use the word master in the docs.", "The word master in the git history is fine."),
    ("We decided against Docker for the lab machines.", "We use Docker for the CI."),
    ("We decided to parse the mails with regexes.", "Don't parse the attachments with regexes."),
    ("We agreed to release every Tuesday.", "We don't release this Tuesday."),
    ("Never restart the node on weekends.", "Restart the node now."),
    ("Always squash the commits of a branch before merging.", "Don't squash the commits of the branch now."),
    ("We decided to use UUIDs for the users table.", "Drop the users table and make it anew."),
    ("We decided to use Kafka for the event bus.", "We don't use the Kafka console for the event bus any more."),
    ("We decided to use Kafka for the event bus.", "Jo says we don't use Kafka for the event bus any more."),
    ("We decided to use Kafka for the event bus.", "If the licence changes, we don't use Kafka any more."),
    ("Never restart the node on weekends.", "Restarting the node on weekends is fine, just this once."),
    ("Use Redis for the cache in tests.", "Use Valkey for the cache instead of Redis from now on."),
)  # fmt: skip


@every_row(("earlier", "later"), ENDED)
def test_what_the_user_denies_drops_passes_over_or_allows_holds_no_longer(earlier, later):
    assert changes_sentence(earlier, later)


@every_row(("earlier", "later"), LEFT)
def test_what_is_about_another_thing_place_or_time_leaves_it(earlier, later):
    assert not changes_sentence(earlier, later)


def test_one_thing_before_another_contradicts_the_other_before_the_one():
    def find(newer):
        one, other = (
            "I prefer tabs over spaces",
            make_summary(newer, newer, id=2, kind=Kind.PREFERENCE),
        )
        return find_change(other, make_summary(one, one, kind=Kind.PREFERENCE))

    change = find("I prefer spaces over tabs")
    assert change is not None
    assert not change.is_whole
    for other in ("spaces over tabs in Python", "tabs over two spaces"):
        assert find(f"I prefer {other}") is None


DECIDED = (
    ("Use Kafka for the event bus", "Drop Kafka for the event bus"),
    ("Use Kafka for the event bus", "Drop Kafka for the event bus and use NATS"),
    ("Render charts with D3", "Abandon D3"),
)


@every_row(("earlier", "later"), DECIDED)
def test_a_decision_to_drop_a_thing_ends_it_though_its_title_does_not_say_that_it_was_decided(
    earlier, later
):
    """`We decided to` is left out of a title."""
    older = make_summary(
        earlier, f"User: “We decided to {earlier[0].lower()}{earlier[1:]}.”", kind=Kind.DECISION
    )
    said = f"User: “We decided to {later[0].lower()}{later[1:]}.”"
    change = find_change(make_summary(later, said, id=2, kind=Kind.DECISION), older)
    assert change is not None
    assert change.is_whole
    fact = make_summary("Test against staging", "Test against staging", id=3, kind=Kind.DECISION)
    assert (
        find_change(
            fact, make_summary("Deploy to staging", "Deploy to staging", kind=Kind.DECISION)
        )
        is None
    )
