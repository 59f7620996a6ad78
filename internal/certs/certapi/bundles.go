// SPDX-License-Identifier: Apache-2.0

package certapi

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

const bundles = "clustertrustbundles"

// Bundle is a ClusterTrustBundle.
type Bundle struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SignerName  string `json:"signerName"`
		TrustBundle string `json:"trustBundle"`
	} `json:"spec"`
}

// BundleNamed returns the ClusterTrustBundle of that name, or nil. It uses a list instead of a get: one permission is then sufficient, and a missing
// bundle is distinguishable from a missing kind.
func (a *API) BundleNamed(ctx context.Context, name string) (*Bundle, error) {
	found, err := a.listBundles(ctx, map[string]string{"fieldSelector": fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	for i := range found {
		if found[i].Name == name {
			return &found[i], nil
		}
	}
	return nil, err
}

// BundlesOf returns the ClusterTrustBundles of a signer with matching labels; "" matches all.
func (a *API) BundlesOf(ctx context.Context, signer, labels string) ([]Bundle, error) {
	found, err := a.listBundles(ctx, map[string]string{
		"fieldSelector": fields.OneTermEqualSelector("spec.signerName", signer).String(), "labelSelector": labels,
	})
	mine := found[:0]
	for i := range found {
		if found[i].Spec.SignerName == signer {
			mine = append(mine, found[i])
		}
	}
	return mine, err
}

func (a *API) listBundles(ctx context.Context, params map[string]string) ([]Bundle, error) {
	var list struct {
		Items []Bundle `json:"items"`
	}
	err := a.callServed(ctx, bundles, call{verb: http.MethodGet, params: params}, &list)
	return list.Items, err
}
