package headers_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirgo/weir/headers"
)

// mostUsed are a hundred widely used interfaces, by a host of each.
var mostUsed = []string{
	// payments and shops
	"api.stripe.com", "api-m.paypal.com", "connect.squareup.com", "checkout-test.adyen.com", "payments.braintree-api.com",
	"production.plaid.com", "api.razorpay.com", "api.mollie.com", "api.paddle.com", "acme.chargebee.com", "v3.recurly.com", "api.gocardless.com", "api.wise.com",
	"acme.myshopify.com", "api.bigcommerce.com", "sellingpartnerapi-na.amazon.com", "api.ebay.com", "openapi.etsy.com", "marketplace.walmartapis.com",
	"api.mercadolibre.com", "api.easypost.com", "api.goshippo.com", "ssapi.shipstation.com",
	// customers, offices and identities
	"acme.salesforce.com", "api.hubapi.com", "www.zohoapis.com", "api.pipedrive.com", "acme.zendesk.com", "acme.freshdesk.com", "api.intercom.io",
	"acme.crm.dynamics.com", "acme.service-now.com", "graph.microsoft.com", "acme.sharepoint.com", "api.notion.com", "api.airtable.com", "app.asana.com",
	"api.trello.com", "api.monday.com", "api.clickup.com", "api.smartsheet.com", "api.dropboxapi.com", "api.box.com", "demo.docusign.net", "api.calendly.com",
	"api.typeform.com", "quickbooks.api.intuit.com", "api.xero.com", "1.suitetalk.api.netsuite.com", "acme.okta.com", "acme.auth0.com", "api.figma.com", "api.miro.com",
	// models
	"api.openai.com", "acme.openai.azure.com", "api.anthropic.com", "generativelanguage.googleapis.com", "api.mistral.ai", "api.groq.com", "api.cohere.com",
	"huggingface.co", "api.together.xyz", "openrouter.ai", "api.deepseek.com", "api.perplexity.ai", "api.elevenlabs.io", "api.replicate.com", "api.x.ai",
	// mail, messages and talk
	"api.sendgrid.com", "api.mailgun.net", "api.postmarkapp.com", "us1.api.mailchimp.com", "a.klaviyo.com", "api.resend.com", "api.twilio.com", "rest.nexmo.com",
	"rest.messagebird.com", "api.telnyx.com", "api.plivo.com", "slack.com", "discord.com", "api.telegram.org", "api.zoom.us", "webexapis.com", "api.line.me",
	// code, clouds and search
	"api.github.com", "gitlab.com", "api.bitbucket.org", "acme.atlassian.net", "api.linear.app", "registry-1.docker.io", "registry.npmjs.org", "circleci.com",
	"api.buildkite.com", "dev.azure.com", "app.terraform.io", "s3.amazonaws.com", "dynamodb.us-east-1.amazonaws.com", "management.azure.com", "www.googleapis.com",
	"api.cloudflare.com", "api.digitalocean.com", "api.heroku.com", "api.vercel.com", "api.netlify.com", "api.fastly.com", "api.hetzner.cloud", "x-dsn.algolia.net",
	"acme.es.io", "acme.snowflakecomputing.com", "acme.cloud.databricks.com",
	// people, places, monitoring, money and facts
	"graph.facebook.com", "api.x.com", "oauth.reddit.com", "api.linkedin.com", "api.pinterest.com", "business-api.tiktok.com", "bsky.social", "api.vk.com",
	"api.twitch.tv", "api.spotify.com", "api.vimeo.com", "maps.googleapis.com", "api.mapbox.com", "geocode.search.hereapi.com", "api.openweathermap.org",
	"api.datadoghq.com", "sentry.io", "api.newrelic.com", "api.pagerduty.com", "api.opsgenie.com", "mixpanel.com", "api2.amplitude.com",
	"api.binance.com", "api.coinbase.com", "api.kraken.com", "api.coingecko.com", "en.wikipedia.org", "api.stackexchange.com", "www.virustotal.com",
}

func TestMostUsedHostsHaveDialects(t *testing.T) {
	for _, host := range mostUsed {
		if headers.DialectOf(from(host, 200).Request) == nil {
			t.Errorf("%s has no dialect", host)
		}
	}
}

// Each place of a refusal in a row, and each of its refusing statuses, is in a vector of that
// vendor.
func TestDialectsHaveAVectorForEachWayToRefuse(t *testing.T) {
	paths, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil {
		t.Fatal(err)
	}
	vectors := map[*headers.Dialect][]vector{}
	for _, v := range slices.Concat(readVectors(t), readVectorsOf(t, paths...)) {
		d, _ := headers.Lookup(v.Vendor)
		vectors[d] = append(vectors[d], v)
	}
	for vendor := range headers.Vendors() {
		d, _ := headers.Lookup(vendor)
		if len(vectors[d]) == 0 {
			t.Errorf("%s has no vector", vendor)
		}
		if vendor != "standard" && !slices.ContainsFunc(vectors[d], func(v vector) bool { return v.Expect.Throttled }) {
			t.Errorf("%s has no vector of a refusal", vendor)
		}
		for _, status := range slices.Concat(d.Refuses, d.RefusesWithWait, d.RefusesByQuota) {
			if !slices.ContainsFunc(vectors[d], func(v vector) bool { return v.Status == status && v.Expect.Throttled }) {
				t.Errorf("%s has no vector of a refusal under %d", vendor, status)
			}
		}
		for _, f := range d.Fields {
			if f.Fact == headers.FactRefusal && !slices.ContainsFunc(vectors[d], func(v vector) bool { return v.found(f, nil) }) {
				t.Errorf("%s has no vector of a refusal in the field %s", vendor, f.Name)
			}
		}
		for _, f := range d.Body {
			if f.Fact == headers.FactRefusal && !slices.ContainsFunc(vectors[d], func(v vector) bool { return v.found(headers.Field{}, &f) }) {
				t.Errorf("%s has no vector of a refusal in the body at %q", vendor, f.Name)
			}
		}
	}
}

// found reports whether one of the field's words is in the vector. A dialect in which every
// response without the word is a refusal shows it.
func (v *vector) found(field headers.Field, body *headers.Field) bool {
	d := &headers.Dialect{Refuses: []int{v.Status}, BodyOfSuccess: true}
	if body != nil {
		hint := *body
		hint.Fact = headers.FactNoRefusal
		d.Body = []headers.Field{hint}
	} else {
		field.Fact = headers.FactNoRefusal
		d.Fields = []headers.Field{field}
	}
	return !d.Parse(v.response(), v.ObservedAt).Throttled
}
