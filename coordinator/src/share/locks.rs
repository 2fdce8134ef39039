//! Acquisition locks: who holds which records until when.
//!
//! A lock covers the records of one acquired range, not one record. Locks of a group mostly have the
//! same length, so keeping them in the order of their deadlines is a queue: a new lock goes to the
//! back, and walks forward only past locks that were taken with a longer duration.

use std::collections::BTreeMap;

use crate::types::Ts;

/// "No lock" in a record, "no neighbour" in the queue, "no member".
pub(super) const NONE: u32 = u32::MAX;

/// One lock. `live` records of `first..=last` still refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) member: u32,
    pub(super) deadline: Ts,
    /// The delivery generation in which its records were acquired.
    pub(super) generation: u64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// Records that refer to the lock; at 0 it is freed.
    live: u32,
    /// Whether it still runs. A lock that ended (deadline, session) lives on only for records whose
    /// state is being written; when such a write fails, they are released at once.
    pub(super) running: bool,
    before: u32,
    after: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    name: String,
    locks: u32,
}

/// All locks of a share partition, in a slab with a queue threaded through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Locks {
    slab: Vec<Lock>,
    free: Vec<u32>,
    head: u32,
    tail: u32,
    members: Vec<Member>,
    free_members: Vec<u32>,
    by_name: BTreeMap<String, u32>,
}

impl Locks {
    pub(super) fn new() -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            head: NONE,
            tail: NONE,
            members: Vec::new(),
            free_members: Vec::new(),
            by_name: BTreeMap::new(),
        }
    }

    /// The slot of a member that holds a lock, else [`NONE`].
    pub(super) fn member(&self, name: &str) -> u32 {
        self.by_name.get(name).copied().unwrap_or(NONE)
    }

    pub(super) fn member_name(&self, member: u32) -> &str {
        &self.members[member as usize].name
    }

    pub(super) fn get(&self, lock: u32) -> &Lock {
        &self.slab[lock as usize]
    }

    /// The last record of `lock`, where all from its first one on still refer to it.
    pub(super) fn whole_to(&self, lock: u32) -> Option<i64> {
        let lock = self.slab.get(lock as usize)?;
        (i64::from(lock.live) == lock.last - lock.first + 1).then_some(lock.last)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.slab.capacity() * size_of::<Lock>()
            + (self.free.capacity() + self.free_members.capacity()) * size_of::<u32>()
            + self.members.capacity() * size_of::<Member>()
    }

    /// How many locks have records.
    pub(super) fn len(&self) -> usize {
        self.slab.len() - self.free.len()
    }

    /// Takes a lock on no record yet, for `name`, beginning at `first`.
    pub(super) fn open(&mut self, name: &str, deadline: Ts, generation: u64, first: i64) -> u32 {
        let member = self.intern(name);
        self.members[member as usize].locks += 1;
        let lock = Lock {
            member,
            deadline,
            generation,
            first,
            last: first - 1,
            live: 0,
            running: true,
            before: NONE,
            after: NONE,
        };
        let id = if let Some(id) = self.free.pop() {
            self.slab[id as usize] = lock;
            id
        } else {
            self.slab.push(lock);
            (self.slab.len() - 1) as u32
        };
        self.enqueue(id);
        id
    }

    /// The record at `offset`, above all before it, refers to `lock` from now on.
    pub(super) fn hold(&mut self, lock: u32, offset: i64) {
        let lock = &mut self.slab[lock as usize];
        lock.last = offset;
        lock.live += 1;
    }

    /// One record fewer refers to `lock`.
    pub(super) fn drop_one(&mut self, lock: u32) {
        self.slab[lock as usize].live -= 1;
        if self.slab[lock as usize].live == 0 {
            self.close(lock);
        }
    }

    /// Ends `lock` without touching its records: it leaves the queue.
    pub(super) fn stop(&mut self, lock: u32) {
        if self.slab[lock as usize].running {
            self.slab[lock as usize].running = false;
            self.unlink(lock);
        }
    }

    /// The running lock with the earliest deadline.
    pub(super) fn first_due(&self) -> Option<(u32, Ts)> {
        (self.head != NONE).then(|| (self.head, self.get(self.head).deadline))
    }

    /// The running locks of `member`, earliest deadline first.
    pub(super) fn running_of(&self, member: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut id = self.head;
        while id != NONE {
            let lock = self.get(id);
            if lock.member == member {
                found.push(id);
            }
            id = lock.after;
        }
        found
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(&member) = self.by_name.get(name) {
            return member;
        }
        let entry = Member {
            name: name.to_owned(),
            locks: 0,
        };
        let member = if let Some(member) = self.free_members.pop() {
            self.members[member as usize] = entry;
            member
        } else {
            self.members.push(entry);
            (self.members.len() - 1) as u32
        };
        self.by_name.insert(name.to_owned(), member);
        member
    }

    fn close(&mut self, lock: u32) {
        self.stop(lock);
        self.free.push(lock);
        let member = self.slab[lock as usize].member;
        let entry = &mut self.members[member as usize];
        entry.locks -= 1;
        if entry.locks == 0 {
            self.by_name.remove(&entry.name);
            entry.name = String::new();
            self.free_members.push(member);
        }
    }

    fn enqueue(&mut self, id: u32) {
        let deadline = self.slab[id as usize].deadline;
        let mut before = self.tail;
        while before != NONE && self.get(before).deadline > deadline {
            before = self.get(before).before;
        }
        let after = if before == NONE {
            self.head
        } else {
            self.get(before).after
        };
        self.slab[id as usize].before = before;
        self.slab[id as usize].after = after;
        self.join(before, id);
        self.join(id, after);
    }

    fn unlink(&mut self, id: u32) {
        let Lock { before, after, .. } = *self.get(id);
        self.join(before, after);
    }

    /// Makes `before` and `after` neighbours; [`NONE`] stands for either end of the queue.
    fn join(&mut self, before: u32, after: u32) {
        if before == NONE {
            self.head = after;
        } else {
            self.slab[before as usize].after = after;
        }
        if after == NONE {
            self.tail = before;
        } else {
            self.slab[after as usize].before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Locks, NONE};

    fn queue(locks: &Locks) -> Vec<i64> {
        let mut deadlines = Vec::new();
        let mut id = locks.head;
        while id != NONE {
            deadlines.push(locks.get(id).deadline);
            id = locks.get(id).after;
        }
        deadlines
    }

    #[test]
    fn the_queue_is_ordered_also_when_the_duration_was_shortened() {
        let mut locks = Locks::new();
        for deadline in [20, 30, 10, 25, 30] {
            locks.open("m", deadline, 0, 0);
        }
        assert_eq!(queue(&locks), [10, 20, 25, 30, 30]);
        let (first, deadline) = locks.first_due().expect("some");
        assert_eq!(deadline, 10);
        locks.stop(first);
        assert_eq!(queue(&locks), [20, 25, 30, 30]);
    }

    #[test]
    fn slots_of_locks_and_members_are_used_again() {
        let mut locks = Locks::new();
        for turn in 0..100 {
            let name = format!("m{turn}");
            let lock = locks.open(&name, turn, 0, turn);
            locks.hold(lock, turn);
            locks.hold(lock, turn + 1);
            assert_eq!(locks.member_name(locks.member(&name)), name);
            locks.drop_one(lock);
            assert_eq!(locks.len(), 1);
            locks.drop_one(lock);
            assert_eq!(locks.member(&name), NONE);
        }
        assert_eq!(
            (locks.len(), locks.slab.len(), locks.members.len()),
            (0, 1, 1)
        );
        assert_eq!(locks.first_due(), None);
    }
}
