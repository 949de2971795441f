//! What collectives give, computed directly: on small whole numbers, without helio.

/// An array of whole numbers in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The size of each dimension.
    pub dims: Vec<usize>,
    /// The elements.
    pub values: Vec<i64>,
}

/// Who acts together: numbers, which a [`Mode`] says the meaning of.
pub type Groups = Vec<Vec<usize>>;

/// What the numbers in groups stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Replicas, of one partition.
    CrossReplica,
    /// Replicas, with all of their partitions.
    CrossReplicaAndPartition,
    /// Partitions, of one replica.
    CrossPartition,
    /// Participants.
    Flattened,
}

/// How many replicas run, and how many partitions of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Replicas.
    pub replicas: usize,
    /// Partitions of each.
    pub partitions: usize,
}

impl Counts {
    /// Replicas times partitions.
    pub fn participants(self) -> usize {
        self.replicas * self.partitions
    }

    /// How many numbers a mode numbers.
    pub fn of(self, mode: Mode) -> usize {
        match mode {
            Mode::CrossReplica | Mode::CrossReplicaAndPartition => self.replicas,
            Mode::CrossPartition => self.partitions,
            Mode::Flattened => self.participants(),
        }
    }

    /// The participants, by number, of the group that `me` is in; `None` if it is in none.
    pub fn group(self, mode: Mode, groups: &Groups, me: usize) -> Option<Vec<usize>> {
        let (replica, partition) = (me / self.partitions, me % self.partitions);
        let own = match mode {
            Mode::CrossReplica | Mode::CrossReplicaAndPartition => replica,
            Mode::CrossPartition => partition,
            Mode::Flattened => me,
        };
        let list = groups.iter().find(|group| group.contains(&own))?;
        let number = |replica: usize, partition: usize| replica * self.partitions + partition;
        Some(match mode {
            Mode::CrossReplica => list.iter().map(|&r| number(r, partition)).collect(),
            Mode::CrossPartition => list.iter().map(|&p| number(replica, p)).collect(),
            Mode::Flattened => list.clone(),
            Mode::CrossReplicaAndPartition => {
                let partitions = |r| (0..self.partitions).map(move |p| number(r, p));
                list.iter().flat_map(|&r| partitions(r)).collect()
            }
        })
    }
}

impl Numbers {
    /// An array of zeros.
    pub fn zeros(dims: &[usize]) -> Self {
        Numbers { dims: dims.to_vec(), values: vec![0; dims.iter().product()] }
    }

    /// Its index in each dimension of the element at a place.
    fn index(&self, mut at: usize) -> Vec<usize> {
        let mut index = vec![0; self.dims.len()];
        for (i, &size) in index.iter_mut().zip(&self.dims).rev() {
            (*i, at) = (at % size, at / size);
        }
        index
    }

    fn at(&self, index: &[usize]) -> i64 {
        self.values[index.iter().zip(&self.dims).fold(0, |at, (&i, &size)| at * size + i)]
    }

    /// An array whose elements `f` gives by index.
    fn from_fn(dims: Vec<usize>, f: impl Fn(&[usize]) -> i64) -> Self {
        let mut numbers = Numbers::zeros(&dims);
        for at in 0..numbers.values.len() {
            numbers.values[at] = f(&numbers.index(at));
        }
        numbers
    }

    /// Part `index` of `count` along a dimension.
    pub fn part(&self, dim: usize, index: usize, count: usize) -> Self {
        let mut dims = self.dims.clone();
        dims[dim] /= count;
        let size = dims[dim];
        Numbers::from_fn(dims, |at| {
            let mut at = at.to_vec();
            at[dim] += index * size;
            self.at(&at)
        })
    }
}

/// Arrays of one shape joined along a dimension.
pub fn join(parts: &[Numbers], dim: usize) -> Numbers {
    let mut dims = parts[0].dims.clone();
    let size = dims[dim];
    dims[dim] *= parts.len();
    Numbers::from_fn(dims, |at| {
        let mut at = at.to_vec();
        let part = at[dim] / size;
        at[dim] %= size;
        parts[part].at(&at)
    })
}

/// Arrays of one shape folded from the first on.
pub fn fold(parts: &[Numbers], f: impl Fn(i64, i64) -> i64) -> Numbers {
    let mut folded = parts[0].clone();
    for part in &parts[1..] {
        for (to, &from) in folded.values.iter_mut().zip(&part.values) {
            *to = f(*to, from);
        }
    }
    folded
}
