// SPDX-License-Identifier: Apache-2.0

package aci

import "net/http"

// Fate is whether a retry may help after a refused create of a group.
type Fate string

// The fates.
const (
	Never  Fate = "never"  // no change elsewhere makes the group possible
	Mended Fate = "mended" // the operator, or the owner of an image or a share, can remove the cause
	Later  Fate = "later"  // a retry may succeed
	Made   Fate = "made"   // a group of this name exists
)

// Answer is a published response of ACI or its resource manager to the create of a group.
type Answer struct {
	// Source is the place of publication, and Date is its date.
	Source, Date string
	// Status is the HTTP status. It is 400 if the source does not quote it, as for most.
	Status int
	Code   string
	Fate   Fate
}

// Sources with several answers.
const (
	support  = "MicrosoftDocs/SupportArticles-docs: "
	identity = support + "acr-image-pull-failures-managed-identity.md"
	spot     = support + "error-codes-spot-container-creation.md"
	manager  = "MicrosoftDocs/azure-docs: common-deployment-errors.md"
)

// Answers returns the published answers, in addition to Rules.
func Answers() []Answer {
	const bad, forbidden, missing, conflict = http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict
	return []Answer{
		{"Azure/azure-cli#30439", "2024-11-28", bad, "InvalidOsType", Never},
		{"MicrosoftLearning/mslearn-azure-developer#67", "2025-06-29", bad, "ResourceRequestsNotSpecified", Never},
		{"virtual-kubelet/virtual-kubelet#364, MicrosoftDocs/azure-docs#8586", "2018-05-14", bad, "OsVersionNotSupported", Never},
		{"JetBrains/teamcity-azure-agent#127, oras-project/oras#1353", "2021-02-17", bad, "ImageOsTypeNotMatchContainerGroup", Never},
		{"cocallaw/terraform-azure-tailscale-subnet-router#13", "2023-04-09", bad, "PrivateIpWithoutSubnetNotSupported", Never},
		{"Azure/terraform-provider-azapi#993", "2025-10-13", bad, "CustomProvisioningTimeoutInSecondsNotSuppported", Never},
		{"hashicorp/terraform-provider-azurerm#13650", "2025-06-09", bad, "LogAnalyticsMetadataNotAllowed", Never},
		{identity, "2026-09-09", bad, "InvalidImageRegistryCredentialType", Never},
		{spot, "2025-04-14", bad, "SpotPriorityContainerGroupWithGPUResourcesNotSupported", Never},
		{spot, "2025-04-14", bad, "PriorityNotSpecified", Never},
		{manager, "2024-06-20", bad, "InvalidParameter", Never},
		{manager, "2024-06-20", bad, "InvalidRequestFormat", Never},

		{"hashicorp/terraform-provider-azurerm#805, " + support + "inaccessible-image.md", "2018-02-07", bad, "InaccessibleImage", Mended},
		{"9owlsboston/TagPulse: docs/runbooks/azure-first-deploy.md, as read on this day", "2026-11-28", bad, "CannotAccessStorageAccount", Mended},
		{"Azure/dev-box-images#8", "2022-10-20", bad, "SubnetMissingRequiredDelegation", Mended},
		{"MicrosoftDocs/azure-docs#88211", "2022-02-16", bad, "SubnetIsFull", Mended},
		{support + "spot-container-group-quota-reached-error.md", "2024-10-28", bad, "ContainerGroupQuotaReached", Mended},
		{"nforgeio/neonKUBE#1671, " + manager, "2022-09-02", conflict, "OperationNotAllowed", Mended},
		{"Azure-Samples/azuresandbox#196, " + manager, "2025-10-31", forbidden, "RequestDisallowedByPolicy", Mended},
		{"Azure-Samples/aci-logicapps-integration#9, " + manager, "2020-09-22", forbidden, "AuthorizationFailed", Mended},
		{manager, "2024-06-20", forbidden, "LinkedAuthorizationFailed", Mended},
		{manager, "2024-06-20", missing, "ResourceGroupNotFound", Mended},
		{manager, "2024-06-20", missing, "SubscriptionNotFound", Mended},
		{manager, "2024-06-20", missing, "ParentResourceNotFound", Mended},
		{manager, "2024-06-20", bad, "MissingSubscriptionRegistration", Mended},
		{manager, "2024-06-20", bad, "MissingRegistrationForLocation", Mended},
		{manager, "2024-06-20", bad, "InvalidSubscriptionRegistrationState", Mended},
		{manager, "2024-06-20", bad, "NoRegisteredProviderFound", Mended},
		{manager, "2024-06-20", bad, "InvalidAuthenticationTokenTenant", Mended},
		{manager, "2024-06-20", bad, "InvalidResourceReference", Mended},
		{manager, "2024-06-20", bad, "LinkedInvalidPropertyId", Mended},
		{manager, "2024-06-20", bad, "PublicIPCountLimitReached", Mended},
		{manager, "2024-06-20", bad, "RegionDoesNotAllowProvisioning", Mended},
		{manager, "2024-06-20", bad, "ResourceQuotaExceeded", Mended},
		{manager, "2024-06-20", bad, "SkuNotAvailable", Mended},
		{manager, "2024-06-20", bad, "StorageAccountNotFound", Mended},

		{"Azure/alz-terraform-accelerator#157, " + support + "docker-hub-rate-limit-registryerrorresponse.md", "2024-07-08", conflict, "RegistryErrorResponse", Later},
		{"virtual-kubelet/virtual-kubelet#592, " + support + "service-unavailable-container-group-quota-exceeded.md", "2019-05-01", conflict, "ServiceUnavailable", Later},
		{"virtual-kubelet/azure-aci#132", "2021-02-09", http.StatusServiceUnavailable, "ServerTimeout", Later},
		{"Azure/azure-cli#30915, " + manager, "2024-06-20", http.StatusInternalServerError, "InternalServerError", Later},
		{manager, "2024-06-20", bad, "AllocationFailed", Later},
		{manager, "2024-06-20", bad, "AnotherOperationInProgress", Later},
		{manager, "2024-06-20", bad, "Conflict", Later},
		{manager, "2024-06-20", bad, "ResourceGroupBeingDeleted", Later},

		{support + "container-group-transitioning-state.md", "2025-01-15", conflict, codeTransitioning, Made},
		{"MicrosoftDocs/azure-docs#31168, #38067", "2019-08-30", bad, codeUpdate, Made},
	}
}

// Error codes of creates for an existing group.
const (
	codeTransitioning = "ContainerGroupTransitioning"
	codeUpdate        = "InvalidContainerGroupUpdate"
)

// unquoted is the code of responses whose sources do not quote a code.
const unquoted = "BadRequest"
