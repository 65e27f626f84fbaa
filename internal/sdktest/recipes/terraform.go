package recipes

import (
	"context"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A petProvider has one Transport for each configuration of the provider.
type petProvider struct {
	open func(share float64) http.RoundTripper // makes a Transport with that Share
}

// Configure gives all resources one client, whose calls wait.
func (p *petProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config struct {
		Share types.Float64 `tfsdk:"share"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	client := &http.Client{Transport: p.open(config.Share.ValueFloat64())} // +
	resp.DataSourceData, resp.ResourceData = client, client
}

// Metadata implements [provider.Provider].
func (p *petProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "pets"
}

// Schema implements [provider.Provider].
func (p *petProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"share": schema.Float64Attribute{Optional: true, Description: "The part of the account's quota that Terraform may take."},
	}}
}

// DataSources implements [provider.Provider].
func (p *petProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return new(pet) }}
}

// Resources implements [provider.Provider].
func (p *petProvider) Resources(context.Context) []func() resource.Resource { return nil }

// A pet is a data source.
type pet struct{ client *http.Client }

// Metadata implements [datasource.DataSource].
func (p *pet) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "pets_pet"
}

// Schema implements [datasource.DataSource].
func (p *pet) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dataschema.Schema{Attributes: map[string]dataschema.Attribute{
		"id": dataschema.StringAttribute{Required: true},
	}}
}

// Configure implements [datasource.DataSourceWithConfigure].
func (p *pet) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	p.client, _ = req.ProviderData.(*http.Client)
}

// Read implements [datasource.DataSource].
func (p *pet) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config struct {
		ID types.String `tfsdk:"id"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if err := p.get(ctx, config.ID.ValueString()); err != nil {
		resp.Diagnostics.AddError("The pet was not read", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}

func (p *pet) get(ctx context.Context, id string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/pets/"+id, nil)
	if err != nil {
		return err
	}
	answer, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("pet %s: %s", id, answer.Status)
	}
	return nil
}
