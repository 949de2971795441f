//! Which device runs which replica and partition of a program.

use std::ops::Range;

use helio_eval::services::Participant;
use helio_ir::{Error, ModuleConfig, Result};

/// Which device runs which replica and partition of a program: a device of its own for each. Where
/// several processes run a program together, each has an assignment for its own part of the
/// participants ([`DeviceAssignment::part`], [`DeviceAssignment::placed`]).
///
/// ```
/// let four = helio::DeviceAssignment::iota(2, 2)?;
/// assert_eq!(four.devices(), [0, 1, 2, 3]);
/// assert_eq!(four.device(1, 0), Some(2));
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceAssignment {
    replicas: usize,
    partitions: usize,
    /// The numbers of the participants that run in this process, in order.
    here: Vec<usize>,
    /// The device of each of them.
    devices: Vec<usize>,
}

impl DeviceAssignment {
    /// The most participants of a program.
    pub const MAX_PARTICIPANTS: usize = 1 << 16;

    /// Devices by id: for each replica in turn, those of its partitions. Errors: `InvalidArgument` if
    /// there are not `replicas` times `partitions`, at least one, or one stands twice.
    pub fn new(replicas: usize, partitions: usize, devices: Vec<usize>) -> Result<Self> {
        let count = participants(replicas, partitions)?;
        if count != devices.len() {
            let found = devices.len();
            return Err(Error::invalid(format!(
                "{replicas} replicas of {partitions} partitions run on {count} devices; {found} are \
                 assigned"
            )));
        }
        ensure_distinct(&devices)?;
        Ok(DeviceAssignment { replicas, partitions, here: (0..count).collect(), devices })
    }

    /// For each replica in turn, the devices of its partitions by id, or `None` for a participant that
    /// runs in another process, which [`RunOptions::collectives`](crate::RunOptions::collectives) has to
    /// reach. Errors: as for [`DeviceAssignment::new`]; `InvalidArgument` if none runs here.
    ///
    /// ```
    /// let every_other = helio::DeviceAssignment::placed(1, 4, &[Some(0), None, Some(1), None])?;
    /// assert_eq!(every_other.here().collect::<Vec<usize>>(), [0, 2]);
    /// assert_eq!(every_other.device(0, 2), Some(1));
    /// # Ok::<(), helio::Error>(())
    /// ```
    pub fn placed(replicas: usize, partitions: usize, devices: &[Option<usize>]) -> Result<Self> {
        let count = participants(replicas, partitions)?;
        if count != devices.len() {
            let found = devices.len();
            return Err(Error::invalid(format!(
                "{replicas} replicas of {partitions} partitions are {count} participants; places of \
                 {found} are given"
            )));
        }
        let ours = devices.iter().enumerate().filter_map(|(i, &device)| Some((i, device?)));
        let (here, devices): (Vec<usize>, Vec<usize>) = ours.unzip();
        if here.is_empty() {
            return Err(Error::invalid(format!("none of {count} participants runs here")));
        }
        ensure_distinct(&devices)?;
        Ok(DeviceAssignment { replicas, partitions, here, devices })
    }

    /// The first devices in order. Errors: `InvalidArgument` if a count is 0 or there are too many.
    pub fn iota(replicas: usize, partitions: usize) -> Result<Self> {
        let count = participants(replicas, partitions)?;
        Self::part(replicas, partitions, 0..count)
    }

    /// An assignment for the participants of these numbers only, on the first devices in order: all
    /// others run in other processes, and [`RunOptions::collectives`](crate::RunOptions::collectives)
    /// has to reach them. Errors: as for [`DeviceAssignment::iota`]; `InvalidArgument` if the range is
    /// empty or has numbers that no participant has.
    pub fn part(replicas: usize, partitions: usize, here: Range<usize>) -> Result<Self> {
        let count = participants(replicas, partitions)?;
        if here.is_empty() || here.end > count {
            let detail =
                format!("participants {here:?} of {count}: at least one of them, no others");
            return Err(Error::invalid(detail));
        }
        let devices = (0..here.len()).collect();
        Ok(DeviceAssignment { replicas, partitions, here: here.collect(), devices })
    }

    /// The assignment of a module that is compiled without one: as many replicas and partitions as
    /// its first line says. Errors: as for [`DeviceAssignment::iota`].
    pub(crate) fn of(config: &ModuleConfig) -> Result<Self> {
        Self::iota(config.replica_count.unwrap_or(1), config.num_partitions.unwrap_or(1))
    }

    /// Has a module's first line say how many run, so that it is checked for that number. Errors:
    /// `InvalidArgument` if it is made for other numbers; 1 is what modules say that were made for
    /// any.
    pub fn state_in(&self, config: &mut ModuleConfig) -> Result<()> {
        self.ensure_fits(config)?;
        for (count, stated) in [
            (self.replicas(), &mut config.replica_count),
            (self.partitions(), &mut config.num_partitions),
        ] {
            if count > 1 {
                *stated = Some(count);
            }
        }
        Ok(())
    }

    /// Errors: `InvalidArgument` if the module is made for other counts.
    fn ensure_fits(&self, config: &ModuleConfig) -> Result<()> {
        let fits = |stated: Option<usize>, own| stated.is_none_or(|n| n == 1 || n == own);
        if fits(config.replica_count, self.replicas())
            && fits(config.num_partitions, self.partitions())
        {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "devices are assigned to {} replicas of {} partitions; the module is made for {} of {}",
            self.replicas(),
            self.partitions(),
            config.replica_count.unwrap_or(1),
            config.num_partitions.unwrap_or(1)
        )))
    }

    /// How many replicas run.
    pub fn replicas(&self) -> usize {
        self.replicas
    }

    /// How many partitions each replica has.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// How many participants run, in this process and in others: replicas times partitions.
    pub fn participants(&self) -> usize {
        self.replicas * self.partitions
    }

    /// The numbers of the participants that run in this process, in order; all of them, except in
    /// [`DeviceAssignment::part`] and [`DeviceAssignment::placed`].
    pub fn here(&self) -> impl ExactSizeIterator<Item = usize> + Clone + use<'_> {
        self.here.iter().copied()
    }

    /// Whether the participant with this number runs in this process.
    pub fn is_here(&self, number: usize) -> bool {
        self.here.binary_search(&number).is_ok()
    }

    /// The number of the participant that the device at this position of
    /// [`DeviceAssignment::devices`] runs.
    pub(crate) fn number(&self, position: usize) -> usize {
        self.here[position]
    }

    /// The place of a participant by number: `replica * partitions + partition`.
    pub fn participant(&self, number: usize) -> Participant {
        Participant { replica: number / self.partitions, partition: number % self.partitions }
    }

    /// What tells a participant apart from the others: `replica 1`, `partition 2`, or both; nothing
    /// if it is the only one.
    pub fn name(&self, who: Participant) -> String {
        name_among((self.replicas(), self.partitions()), who)
    }

    /// The ids of the devices: for each replica in turn, those of its partitions; of the participants
    /// that run in this process.
    pub fn devices(&self) -> &[usize] {
        &self.devices
    }

    /// The id of the device that runs a partition of a replica; `None` if it runs in another process.
    pub fn device(&self, replica: usize, partition: usize) -> Option<usize> {
        let number = replica.checked_mul(self.partitions)?.checked_add(partition)?;
        let position = self.here.binary_search(&number).ok()?;
        (partition < self.partitions).then(|| self.devices[position])
    }
}

/// Errors: `InvalidArgument` if a device stands twice.
fn ensure_distinct(devices: &[usize]) -> Result<()> {
    let mut sorted = devices.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::invalid(format!("device {} is assigned twice", pair[0]))),
        None => Ok(()),
    }
}

/// What tells a participant apart from the others, among that many replicas and partitions.
pub(crate) fn name_among(counts: (usize, usize), who: Participant) -> String {
    match counts {
        (1, 1) => String::new(),
        (_, 1) => format!("replica {}", who.replica),
        (1, _) => format!("partition {}", who.partition),
        _ => who.to_string(),
    }
}

/// Errors: as for [`DeviceAssignment::iota`].
fn participants(replicas: usize, partitions: usize) -> Result<usize> {
    let count = replicas.checked_mul(partitions);
    count.filter(|count| (1..=DeviceAssignment::MAX_PARTICIPANTS).contains(count)).ok_or_else(
        || {
            let most = DeviceAssignment::MAX_PARTICIPANTS;
            let detail =
                format!("{replicas} replicas of {partitions} partitions: 1 to {most} can run");
            Error::invalid(detail)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_participant_has_a_device_of_its_own() {
        let detail = |r: Result<DeviceAssignment>| r.unwrap_err().detail().to_owned();
        let swapped = DeviceAssignment::new(1, 2, vec![1, 0]).unwrap();
        assert_eq!([swapped.device(0, 0), swapped.device(0, 1)], [Some(1), Some(0)]);
        assert_eq!([swapped.device(0, 2), swapped.device(usize::MAX, 0)], [None, None]);
        assert_eq!(
            detail(DeviceAssignment::new(2, 2, vec![0, 1, 2])),
            "2 replicas of 2 partitions run on 4 devices; 3 are assigned"
        );
        assert_eq!(
            detail(DeviceAssignment::new(3, 1, vec![4, 2, 4])),
            "device 4 is assigned twice"
        );
        for (replicas, partitions) in [(0, 1), (1, 0), (usize::MAX, 2), (1 << 9, 1 << 9)] {
            assert!(detail(DeviceAssignment::iota(replicas, partitions)).contains("can run"));
        }
    }

    #[test]
    fn a_process_may_run_a_part() {
        let part = DeviceAssignment::part(2, 2, 1..3).unwrap();
        assert_eq!((part.participants(), part.devices()), (4, &[0, 1][..]));
        assert_eq!(part.here().collect::<Vec<usize>>(), [1, 2]);
        let devices = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(r, p)| part.device(r, p));
        assert_eq!(devices, [None, Some(0), Some(1), None]);
        for wrong in [0..0, 3..5, 4..4] {
            assert!(DeviceAssignment::part(2, 2, wrong).is_err());
        }
    }

    #[test]
    fn participants_of_a_process_may_stand_anywhere() {
        let placed = |devices: &[Option<usize>]| DeviceAssignment::placed(2, 2, devices);
        let outer = placed(&[Some(7), None, None, Some(3)]).unwrap();
        assert_eq!((outer.here().collect(), outer.devices()), (vec![0, 3], &[7, 3][..]));
        assert_eq!(
            [outer.device(1, 1), outer.device(0, 1), outer.device(0, 3)],
            [Some(3), None, None]
        );
        assert_eq!([0, 1, 4].map(|number| outer.is_here(number)), [true, false, false]);
        let part = placed(&[None, Some(0), Some(1), None]).unwrap();
        assert_eq!(part, DeviceAssignment::part(2, 2, 1..3).unwrap());
        let detail = |devices: &[Option<usize>]| placed(devices).unwrap_err().detail().to_owned();
        assert_eq!(detail(&[None; 4]), "none of 4 participants runs here");
        assert_eq!(detail(&[Some(1), None, Some(1), None]), "device 1 is assigned twice");
        assert!(detail(&[Some(1)]).contains("places of 1 are given"));
    }

    #[test]
    fn modules_may_say_how_many_they_are_made_for() {
        let config = ModuleConfig { replica_count: Some(4), ..ModuleConfig::default() };
        assert_eq!(DeviceAssignment::of(&config), DeviceAssignment::iota(4, 1));
        assert_eq!(DeviceAssignment::iota(4, 2).unwrap().ensure_fits(&config), Ok(()));
        let error = DeviceAssignment::iota(2, 1).unwrap().ensure_fits(&config).unwrap_err();
        assert_eq!(
            error.detail(),
            "devices are assigned to 2 replicas of 1 partitions; the module is made for 4 of 1"
        );
    }
}
