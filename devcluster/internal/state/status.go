// SPDX-License-Identifier: Apache-2.0

package state

// Phase is the phase in the life of a cluster.
type Phase string

// The phases of a cluster.
const (
	Stopped  Phase = "stopped"
	Starting Phase = "starting" // a process runs the cluster, which is not ready yet
	Running  Phase = "running"
)

// Status is the state of a cluster as seen from outside.
type Status struct {
	Phase  Phase
	PID    int    // the process that runs the cluster, 0 when it is stopped
	Record Record // of the last start that became ready; zero if no start did
}

// Status asks the kernel which process runs the cluster and reads the record of that process.
func (d Dir) Status() (Status, error) {
	pid, err := d.Holder()
	if err != nil {
		return Status{}, err
	}
	record, _, err := d.ReadRecord()
	if err != nil {
		return Status{}, err
	}
	s := Status{Phase: Stopped, PID: pid, Record: record}
	switch pid {
	case 0:
	case record.PID:
		s.Phase = Running
	default:
		s.Phase = Starting // the record is an earlier process's
	}
	return s, nil
}
