// SPDX-License-Identifier: Apache-2.0

package eci

// The answers of ECI. The decoder ignores the case of names.

type createAnswer struct{ ContainerGroupID string }

// statusAnswer is the answer to DescribeContainerGroupStatus.
type statusAnswer struct {
	Data      []groupStatus
	NextToken string
}

// groupStatus is the state of a group, without the states of init containers.
type groupStatus struct {
	ContainerGroupID string
	// Name is the name of the group.
	Name string
	// Status is the state of the group. PodStatus is similar to that of Kubernetes.
	Status    string
	PodStatus struct {
		Phase             string
		PodIP, HostIP     string
		PodIPs            []struct{ IP string }
		StartTime         string
		Conditions        []condition
		ContainerStatuses []containerStatus
	}
}

type condition struct{ Type, Status, Reason, Message string }

type containerStatus struct {
	Name, Image, ImageID string
	Ready, Started       *bool
	RestartCount         int32
	State, LastState     containerState
}

type containerState struct {
	Waiting *struct{ Reason, Message string }
	Running *struct {
		// the name in the answers of ECI
		StartedAtStartedAt string `json:"StartedAtstartedAt"`
		StartedAt          string
	}
	Terminated *struct {
		ContainerID           string
		ExitCode, Signal      *int32
		Reason, Message       string
		StartedAt, FinishedAt string
	}
}

// groupsAnswer is the answer to DescribeContainerGroups.
type groupsAnswer struct {
	ContainerGroups []group
	NextToken       string
}

// group is a described group. This provider reads its tags and the states of its init containers.
type group struct {
	ContainerGroupID, ContainerGroupName string
	Status                               string
	CreationTime                         string
	Tags                                 []tag
	InitContainers                       []describedContainer
	Events                               []struct{ Reason, Message, Type string }
}

type describedContainer struct {
	Name          string
	Ready         *bool
	RestartCount  int32
	CurrentState  describedState
	PreviousState describedState
}

type describedState struct {
	State, DetailStatus   string
	ExitCode, Signal      *int32
	StartTime, FinishTime string
	Reason, Message       string
}

type logAnswer struct{ Content string }

type execAnswer struct {
	WebSocketURI string `json:"WebSocketUri"`
	SyncResponse string
}

// metricAnswer is the answer to DescribeMultiContainerGroupMetric: the newest record of each group.
type metricAnswer struct {
	MonitorDatas []struct {
		ContainerGroupID string
		Records          []usage
	}
}

// usage is the usage of a group at a time.
type usage struct {
	Timestamp  string
	CPU        cpuUsage
	Memory     memoryUsage
	Network    struct{ Interfaces []interfaceUsage }
	Containers []struct {
		Name   string
		CPU    cpuUsage
		Memory memoryUsage
	}
}

type cpuUsage struct{ UsageNanoCores, UsageCoreNanoSeconds *uint64 }

type memoryUsage struct{ AvailableBytes, UsageBytes, WorkingSet, RSS *uint64 }

type interfaceUsage struct {
	Name                                 string
	RxBytes, RxErrors, TxBytes, TxErrors *uint64
}
