// SPDX-License-Identifier: Apache-2.0

// Package statsv1alpha1 names the types of the stats summary as earlier versions of this library did. They are aliases: a value of one
// package is a value of the other. New programs import k8s.io/kubelet/pkg/apis/stats/v1alpha1. The package has nothing else.
package statsv1alpha1

import "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

// Types of the stats summary.
type (
	// Summary is the resource usage of a node and its pods.
	Summary = v1alpha1.Summary
	// NodeStats is the resource usage of a node.
	NodeStats = v1alpha1.NodeStats
	// RlimitStats is the number of processes and its limit.
	RlimitStats = v1alpha1.RlimitStats
	// RuntimeStats is the resource usage of the container runtime.
	RuntimeStats = v1alpha1.RuntimeStats
	// ProcessStats has statistics about the processes of a pod or node.
	ProcessStats = v1alpha1.ProcessStats
	// PodStats is the resource usage of a pod.
	PodStats = v1alpha1.PodStats
	// ContainerStats is the resource usage of a container.
	ContainerStats = v1alpha1.ContainerStats
	// PodReference names a pod.
	PodReference = v1alpha1.PodReference
	// InterfaceStats has statistics about one network interface.
	InterfaceStats = v1alpha1.InterfaceStats
	// NetworkStats has statistics about the network.
	NetworkStats = v1alpha1.NetworkStats
	// CPUStats has statistics about CPU usage.
	CPUStats = v1alpha1.CPUStats
	// MemoryStats has statistics about memory usage.
	MemoryStats = v1alpha1.MemoryStats
	// IOStats has statistics about input and output.
	IOStats = v1alpha1.IOStats
	// PSIStats has statistics about the time lost while waiting for a resource (pressure stall information).
	PSIStats = v1alpha1.PSIStats
	// PSIData is PSIStats for some or all tasks.
	PSIData = v1alpha1.PSIData
	// SwapStats has statistics about swap space.
	SwapStats = v1alpha1.SwapStats
	// AcceleratorStats has statistics about one accelerator, such as a GPU.
	AcceleratorStats = v1alpha1.AcceleratorStats
	// VolumeStats has statistics about one volume.
	VolumeStats = v1alpha1.VolumeStats
	// PVCReference names a PersistentVolumeClaim.
	PVCReference = v1alpha1.PVCReference
	// FsStats has statistics about one file system.
	FsStats = v1alpha1.FsStats
	// UserDefinedMetricType describes how the values of a metric relate.
	UserDefinedMetricType = v1alpha1.UserDefinedMetricType
	// UserDefinedMetricDescriptor describes a metric.
	UserDefinedMetricDescriptor = v1alpha1.UserDefinedMetricDescriptor
	// UserDefinedMetric is one value of a metric.
	UserDefinedMetric = v1alpha1.UserDefinedMetric
)

// Names and kinds that occur in the stats summary.
const (
	// SystemContainerKubelet names the container of the kubelet.
	SystemContainerKubelet = v1alpha1.SystemContainerKubelet
	// SystemContainerRuntime names the container of the container runtime.
	SystemContainerRuntime = v1alpha1.SystemContainerRuntime
	// SystemContainerMisc names the container of all other system processes.
	SystemContainerMisc = v1alpha1.SystemContainerMisc
	// SystemContainerPods names the container of all pods.
	SystemContainerPods = v1alpha1.SystemContainerPods
	// SystemContainerWindowsGlobalCommitMemory names the commit memory of the whole Windows system.
	SystemContainerWindowsGlobalCommitMemory = v1alpha1.SystemContainerWindowsGlobalCommitMemory
	// MetricGauge is a value at a moment.
	MetricGauge = v1alpha1.MetricGauge
	// MetricCumulative is a total since a beginning.
	MetricCumulative = v1alpha1.MetricCumulative
	// MetricDelta is a change in an interval.
	MetricDelta = v1alpha1.MetricDelta
)
