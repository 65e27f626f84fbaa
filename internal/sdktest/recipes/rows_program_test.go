package recipes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Rows of programs that call an API without an SDK.

func webhookDeliver(rt http.RoundTripper) func(context.Context) error {
	client := &http.Client{Transport: rt}
	return func(ctx context.Context) error {
		return deliver(ctx, client, "https://customer.example.com/hook", "evt_1", []byte(`{"paid":true}`))
	}
}

// reconcileOnce makes a call as one Reconcile does.
func reconcileOnce(rt http.RoundTripper) func(context.Context) error {
	client := &http.Client{Transport: rt}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://api.example.com/dns", nil)
		if err != nil {
			return err
		}
		after, err := callOrRequeue(rt.(looking).rig.transport, client, req)
		if err == nil && after > 0 {
			return requeued{after}
		}
		return err
	}
}

// A requeued error is the answer of a Reconcile that asks to be called again.
type requeued struct{ after time.Duration }

func (r requeued) Error() string { return "again in " + r.after.String() }
func (requeued) seen() string    { return "none: a time to come back" }

// terraformRead reads a data source as the terraform program does.
func terraformRead(rt http.RoundTripper) func(context.Context) error {
	read := configured(&petProvider{open: func(float64) http.RoundTripper { return rt }}, nil)
	return func(ctx context.Context) error { return read(ctx, "rex") }
}

// configured returns what reads a pet through a provider with a share.
func configured(p *petProvider, share any) func(ctx context.Context, id string) error {
	server := providerserver.NewProtocol6(p)()
	answer, broken := server.ConfigureProvider(context.Background(), &tfprotov6.ConfigureProviderRequest{Config: object("share", tftypes.Number, share)})
	return func(ctx context.Context, id string) error {
		if broken != nil || len(answer.Diagnostics) > 0 {
			return errors.Join(broken, diagnosis(answer.Diagnostics))
		}
		answer, err := server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: "pets_pet", Config: object("id", tftypes.String, id)})
		if err != nil {
			return err
		}
		return diagnosis(answer.Diagnostics)
	}
}

// object returns an object of one attribute, as terraform sends it.
func object(name string, of tftypes.Type, value any) *tfprotov6.DynamicValue {
	all := tftypes.Object{AttributeTypes: map[string]tftypes.Type{name: of}}
	sent, err := tfprotov6.NewDynamicValue(all, tftypes.NewValue(all, map[string]tftypes.Value{name: tftypes.NewValue(of, value)}))
	if err != nil {
		panic(err)
	}
	return &sent
}

// A diagnosed error is text that terraform prints.
type diagnosed string

func (d diagnosed) Error() string { return string(d) }
func (diagnosed) seen() string    { return "none: a diagnostic, as text" }

func diagnosis(all []*tfprotov6.Diagnostic) error {
	var errs []error
	for _, d := range all {
		errs = append(errs, diagnosed(d.Summary+": "+d.Detail))
	}
	return errors.Join(errs...)
}
