// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	etcdversion "go.etcd.io/etcd/api/v3/version"
	"k8s.io/component-base/version"
)

// KubernetesVersion returns the version that the API server and kubectl report, such as "v1.37.1".
func KubernetesVersion() string { return version.Get().GitVersion }

// EtcdVersion returns etcd's version, such as "v3.7.0".
func EtcdVersion() string { return "v" + etcdversion.Version }
