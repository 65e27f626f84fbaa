package vendors

import (
	"net/http"
	"time"
)

// SendGrid returns the preset of SendGrid's v3 API. It has no number: each answer
// reports that of its endpoint.
func SendGrid() Preset {
	return preset(Preset{
		Name:    "SendGrid",
		Keys:    "API key; endpoints are learned within the lane",
		Repeats: "what was refused",
		key:     credential,
		Numbers: []Number{{
			// "Depending on the endpoint you are trying to reach, it will have a specific number of allowed requests per refresh period."
			Counts: "requests to an endpoint in a refresh period",
			Source: "https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/rate-limits", Read: "2026-11-25", Method: "reported",
			Note: "X-Ratelimit-Limit, -Remaining and -Reset; the page's 500 is an example",
		}},
	})
}

// awsAccessKey keys by the access key in the signature. The rest of the field is
// another one on each request.
func awsAccessKey(req *http.Request) string {
	id := between(req.Header.Get("Authorization"), "Credential=", "/")
	return credential(&http.Request{URL: req.URL, Header: http.Header{"Authorization": {id}}})
}

// AmazonSES returns the preset of Amazon SES for an account in the sandbox. A message to several
// recipients costs as many permits: send it with weir.WithCost. The sandbox has one a second,
// so such a message fails there: send one to each recipient.
func AmazonSES() Preset {
	const source = "https://docs.aws.amazon.com/ses/latest/dg/quotas.html"
	return preset(Preset{
		Name:    "Amazon SES",
		Hosts:   []string{"email.*.amazonaws.com"},
		Keys:    "region (its host) and access key",
		Repeats: "what was refused; a message that failed may have been sent",
		key:     awsAccessKey,
		costs:   units{},
		Numbers: []Number{{
			// "If your account is in the sandbox, you can send up to 200 emails per 24-hour period."
			Counts: "recipients of an account in a region", Most: 200, In: 24 * time.Hour, Unit: "recipients",
			Source: source, Read: "2026-11-25", Method: "documented", Note: "GetSendQuota returns that of an account out of the sandbox",
		}, {
			// "If your account is in the sandbox, you can send 1 email per second." "Quotas are based on the number of recipients."
			Counts: "recipients of an account in a region", Most: 1, In: time.Second, Unit: "recipients",
			Source: source, Read: "2026-11-25", Method: "documented", Note: "GetSendQuota returns that of an account out of the sandbox",
		}},
	})
}

// Mailgun returns the preset of Mailgun's API. It has no number, because Mailgun states none.
func Mailgun() Preset {
	return preset(Preset{
		Name:    "Mailgun",
		Keys:    "API key",
		Repeats: "what was refused; a message that failed may have been queued",
		key:     credential,
		Numbers: []Number{{
			// "Mailgun does have rate limits in place to protect our system. Please retry these requests as defined in the response."
			Counts: "requests",
			Source: "https://documentation.mailgun.com/docs/mailgun/quickstart-guide/responses", Read: "2026-11-25", Method: "learned", Note: "no number is stated",
		}},
	})
}
