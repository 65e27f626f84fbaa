package vendors_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/vendors"
)

// Every row can be traced: a page, a day, a method, and a reason if it has no number.
func TestPresetsSayWhereEachNumberIsFrom(t *testing.T) {
	methods := []string{"documented", "measured", "reported", "learned", "unverified"}
	for _, p := range vendors.All() {
		if _, ok := headers.Lookup(p.Name); !ok {
			t.Errorf("%s: headers knows no such vendor", p.Name)
		}
		if len(p.Hosts) == 0 || p.Keys == "" || p.Repeats == "" || len(p.Numbers) == 0 {
			t.Errorf("%s: hosts %q, keys %q, repeats %q, %d numbers: something is missing", p.Name, p.Hosts, p.Keys, p.Repeats, len(p.Numbers))
		}
		for _, n := range p.Numbers {
			if !strings.HasPrefix(n.Source, "https://") || n.Counts == "" || !slices.Contains(methods, n.Method) {
				t.Errorf("%s: %+v has no source, method or subject", p.Name, n)
			}
			if _, err := time.Parse(time.DateOnly, n.Read); err != nil {
				t.Errorf("%s: %s: read %q is not a day", p.Name, n.Counts, n.Read)
			}
			if n.Most == 0 && n.Note == "" || n.Most > 0 && n.Method != "documented" && n.Method != "measured" {
				t.Errorf("%s: %s: %v is %s, with note %q", p.Name, n.Counts, n, n.Method, n.Note)
			}
		}
	}
}

// CI prints the rows that should be read again. They are no failure: a page is often
// unchanged for years.
func TestPresetsThatAreOld(t *testing.T) {
	for _, row := range old(time.Now()) {
		t.Log(row)
	}
	numbers, day := 0, time.Time{} // on which the first one was read
	for _, p := range vendors.All() {
		for _, n := range p.Numbers {
			read, _ := time.Parse(time.DateOnly, n.Read)
			if numbers++; day.IsZero() || read.Before(day) {
				day = read
			}
		}
	}
	if rows := old(day.AddDate(0, 0, 180)); len(rows) > 0 {
		t.Errorf("after 180 days these are old: %q, want none", rows)
	}
	if rows := old(time.Now().AddDate(100, 0, 0)); len(rows) != numbers {
		t.Errorf("in a hundred years %d rows are old, want all %d", len(rows), numbers)
	}
}

// old returns the rows that were read more than 180 days before now.
func old(now time.Time) (rows []string) {
	for _, p := range vendors.All() {
		for _, n := range p.Numbers {
			if read, err := time.Parse(time.DateOnly, n.Read); err == nil && now.Sub(read) > 180*24*time.Hour {
				rows = append(rows, fmt.Sprintf("%s: %s was read on %s: read %s again", p.Name, n.Counts, n.Read, n.Source))
			}
		}
	}
	return rows
}

// A preset is a Transport that works as it is.
func TestPresetsValidate(t *testing.T) {
	var names []string
	for _, p := range vendors.All() {
		names = append(names, strings.ToLower(p.Name))
		tr := p.Transport()
		if err := tr.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if d, _ := headers.Lookup(p.Name); tr.Dialect != d {
			t.Errorf("%s: its Transport reads another dialect", p.Name)
		}
		for _, n := range p.Numbers {
			if l := n.Limit(); n.Most > 0 && n.In > 0 && l.Validate() != nil {
				t.Errorf("%s: %s: %v", p.Name, n.Counts, l.Validate())
			}
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != 22 {
		t.Errorf("presets are of %q, want 22 names", names)
	}
}

// get returns a request with header fields.
func get(url string, fields ...string) *http.Request {
	req := httptest.NewRequest(http.MethodGet, url, nil)
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	return req
}

// Calls that the vendor counts apart have lanes of their own, and calls counted together share one.
func TestPresetKeys(t *testing.T) {
	const auth = "Authorization"
	for _, c := range []struct {
		preset vendors.Preset
		a, b   *http.Request
		shared bool
	}{
		{vendors.GitHub(), get("https://api.github.com/a", auth, "one"), get("https://api.github.com/b", auth, "two"), false},
		{vendors.GitHub(), get("https://api.github.com/a", auth, "one"), get("https://api.github.com/b", auth, "one"), true},
		{vendors.GitHubGraphQL(), get("https://api.github.com/graphql", auth, "one"), get("https://api.github.com/graphql", auth, "two"), false},
		{vendors.GitLab(), get("https://gitlab.com/api/v4/a", "Private-Token", "one"), get("https://gitlab.com/api/v4/a", "Private-Token", "two"), false},
		{vendors.OpenAI(), get("https://api.openai.com/v1/a", auth, "one"), get("https://api.openai.com/v1/a", auth, "one", "OpenAI-Project", "p"), false},
		{vendors.Anthropic(), get("https://api.anthropic.com/v1/messages", "X-Api-Key", "one"), get("https://api.anthropic.com/v1/messages", "X-Api-Key", "two"), false},
		{vendors.Gemini(), get("https://h/v1beta/models/pro:generateContent", "X-Goog-Api-Key", "k"), get("https://h/v1beta/models/flash:generateContent", "X-Goog-Api-Key", "k"), false},
		{vendors.Gemini(), get("https://h/v1beta/models/pro:generateContent", "X-Goog-Api-Key", "k"), get("https://h/v1beta/models/pro:countTokens", "X-Goog-Api-Key", "k"), true},
		{vendors.Stripe(), get("https://api.stripe.com/v1/a", auth, "k", "Stripe-Account", "a"), get("https://api.stripe.com/v1/a", auth, "k", "Stripe-Account", "b"), false},
		{vendors.Shopify(), get("https://a.myshopify.com/admin", "X-Shopify-Access-Token", "k"), get("https://b.myshopify.com/admin", "X-Shopify-Access-Token", "k"), false},
		{vendors.ShopifyGraphQL(), get("https://a.myshopify.com/admin", "X-Shopify-Access-Token", "k"), get("https://a.myshopify.com/admin", "X-Shopify-Access-Token", "l"), false},
		{vendors.Slack(), get("https://slack.com/api/chat.postMessage", auth, "k"), get("https://slack.com/api/users.list", auth, "k"), false},
		{vendors.Slack(), get("https://slack.com/api/users.list", auth, "k"), get("https://slack.com/api/users.list", auth, "l"), false},
		{vendors.Discord(), get("https://discord.com/api/a", auth, "k"), get("https://discord.com/api/b", auth, "k"), true},
		{vendors.Discord(), get("https://discord.com/api/a", auth, "k"), get("https://discord.com/api/a", auth, "l"), false},
		{vendors.Twilio(), get("https://api.twilio.com/a", auth, "k"), get("https://api.twilio.com/a", auth, "l"), false},
		{vendors.SendGrid(), get("https://api.sendgrid.com/a", auth, "k"), get("https://api.sendgrid.com/a", auth, "l"), false},
		{vendors.Mailgun(), get("https://api.mailgun.net/a", auth, "k"), get("https://api.mailgun.net/a", auth, "l"), false},
		{vendors.AmazonSES(), get("https://email.eu-west-1.amazonaws.com/", auth, "AWS4-HMAC-SHA256 Credential=AK1/1/eu, Signature=a"),
			get("https://email.eu-west-1.amazonaws.com/", auth, "AWS4-HMAC-SHA256 Credential=AK1/2/eu, Signature=b"), true},
		{vendors.AmazonSES(), get("https://email.eu-west-1.amazonaws.com/", auth, "AWS4-HMAC-SHA256 Credential=AK1/1/eu, Signature=a"),
			get("https://email.eu-west-1.amazonaws.com/", auth, "AWS4-HMAC-SHA256 Credential=AK2/1/eu, Signature=a"), false},
		{vendors.HubSpot(), get("https://api.hubapi.com/a", auth, "k"), get("https://api.hubapi.com/a", auth, "l"), false},
		{vendors.Notion(), get("https://api.notion.com/v1/a", auth, "k"), get("https://api.notion.com/v1/a", auth, "l"), false},
		{vendors.Airtable(), get("https://api.airtable.com/v0/app1/t", auth, "k"), get("https://api.airtable.com/v0/meta/bases/app1/tables", auth, "l"), true},
		{vendors.Airtable(), get("https://api.airtable.com/v0/app1/t", auth, "k"), get("https://api.airtable.com/v0/app2/t", auth, "k"), false},
		{vendors.Jira(), get("https://a.atlassian.net/rest", auth, "k"), get("https://a.atlassian.net/rest", auth, "l"), true},
		{vendors.Jira(), get("https://api.atlassian.com/ex/jira/s1/rest"), get("https://api.atlassian.com/ex/jira/s2/rest"), false},
		{vendors.Salesforce(), get("https://a.my.salesforce.com/x"), get("https://b.my.salesforce.com/x"), false},
		{vendors.Okta(), get("https://a.okta.com/x"), get("https://b.okta.com/x"), false},
		{vendors.DockerHub(), get("https://registry-1.docker.io/v2/a", auth, "k"), get("https://registry-1.docker.io/v2/b", auth, "l"), true},
	} {
		key := c.preset.Transport().Key
		if key == nil {
			key = weir.ByHost
		}
		if a, b := key(c.a), key(c.b); (a == b) != c.shared {
			t.Errorf("%s: keys %q of %s and %q of %s, want shared %v", c.preset.Name, a, c.a.URL, b, c.b.URL, c.shared)
		} else if strings.Contains(a, c.a.Header.Get(auth)) && len(c.a.Header.Get(auth)) > 1 {
			t.Errorf("%s: key %q shows the credential", c.preset.Name, a)
		}
	}
}

// A call costs what the vendor counts, and nothing of what it does not.
func TestPresetCosts(t *testing.T) {
	post := func(url string) *http.Request {
		return httptest.NewRequest(http.MethodPost, url, strings.NewReader(strings.Repeat("a", 400)))
	}
	for _, c := range []struct {
		preset vendors.Preset
		req    *http.Request
		unit   string
		want   int
	}{
		{vendors.GitHub(), get("https://api.github.com/a"), "points", 1},
		{vendors.GitHub(), post("https://api.github.com/a"), "points", 5},
		{vendors.GitHub(), get("https://api.github.com/a"), "content", 0},
		{vendors.GitHub(), post("https://api.github.com/a"), "content", 1},
		{vendors.GitHub(), post("https://api.github.com/a"), "", 1},
		{vendors.GitHubGraphQL(), post("https://api.github.com/graphql"), "secondary-points", 5},
		{vendors.DockerHub(), get("https://registry-1.docker.io/v2/library/go/manifests/latest"), "pulls", 1},
		{vendors.DockerHub(), get("https://registry-1.docker.io/v2/library/go/blobs/sha256:1"), "pulls", 0},
		{vendors.OpenAI(), post("https://api.openai.com/v1/responses"), "tokens", 101},
		{vendors.Discord(), get("https://discord.com/api/a"), "invalid", 0},
	} {
		tr := c.preset.Transport()
		l := vendors.Number{Most: 1, In: time.Second, Unit: c.unit}.Limit()
		if got := tr.Cost(c.req, l); got != c.want {
			t.Errorf("%s: %s %s costs %d of %q, want %d", c.preset.Name, c.req.Method, c.req.URL, got, c.unit, c.want)
		}
	}
}

// A POST that only reads may be repeated; another one may not.
func TestPresetReadsMayBeRepeated(t *testing.T) {
	for url, want := range map[string]bool{"https://api.notion.com/v1/databases/1/query": true, "https://api.notion.com/v1/pages": false} {
		req := httptest.NewRequest(http.MethodPost, url, nil)
		if got := vendors.Notion().Transport().Retry.Idempotent(req); got != want {
			t.Errorf("Idempotent(POST %s) = %v, want %v", url, got, want)
		}
	}
	if vendors.Stripe().Transport().Retry != nil {
		t.Error("a preset without such paths has a policy")
	}
}

// A share takes its part of every number, and a changed number is the one in force.
func TestPresetShareAndEdit(t *testing.T) {
	p := vendors.HubSpot()
	p.Numbers[0].Most, p.Share = 190, 0.5
	if got := p.Transport().Limits[0].Permits; got != 95 {
		t.Errorf("half of 190 is %d", got)
	}
	if got := vendors.HubSpot().Numbers[0].Most; got != 100 {
		t.Errorf("a preset of its own has %d, want 100", got)
	}
	o := vendors.Okta()
	if o.Share = 0.2; o.Transport().InFlight.Max != 7 {
		t.Errorf("a fifth of 35 at a time is %d", o.Transport().InFlight.Max)
	}
}
