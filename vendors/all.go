package vendors

// All returns every preset, in the order of the functions' names.
func All() []Preset {
	return []Preset{
		Airtable(), AmazonSES(), Anthropic(), Discord(), DockerHub(), Gemini(), GitHub(), GitHubGraphQL(), GitLab(), HubSpot(), Jira(),
		Mailgun(), Notion(), Okta(), OpenAI(), Salesforce(), SendGrid(), Shopify(), ShopifyGraphQL(), Slack(), Stripe(), Twilio(),
	}
}
