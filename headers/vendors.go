package headers

import (
	"slices"
	"time"
)

const day = 24 * time.Hour

// vendors are the dialects that this package knows. If a vendor keeps to the
// rules for all vendors, its row only says what its words mean. Field names are
// written as net/http writes them, which saves a conversion for each response.
var vendors = slices.Concat(
	modelVendors,
	inferenceVendors,
	cloudVendors,
	hostingVendors,
	codeVendors,
	businessVendors,
	officeVendors,
	socialVendors,
	exchangeVendors,
	monitoringVendors,
	commerceVendors,
	mediaVendors,
	gatewayVendors,
	dataVendors,
	marketVendors,
)
