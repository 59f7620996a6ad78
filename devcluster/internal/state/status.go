// SPDX-License-Identifier: Apache-2.0

package state

// Phase is where a cluster is in its life.
type Phase string

// The phases of a cluster.
const (
	Stopped  Phase = "stopped"
	Starting Phase = "starting" // a process runs it, but it is not ready yet
	Running  Phase = "running"
)

// Status is what can be said about a cluster from outside.
type Status struct {
	Phase  Phase
	PID    int    // the process that runs the cluster, 0 when it is stopped
	Record Record // of the last start that became ready; zero if there was none
}

// Status asks the kernel who runs the cluster and reads what that process wrote.
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
