//! The code of schedulers that decide on their own supply: the policy that their file names.

use punctual_kern::{ChildScheduler, CpuPlan, NodeId};
use punctual_model::Trust;
use punctual_policy::AnyPolicy;

/// The code of all such schedulers of one CPU.
pub(crate) fn child_schedulers(plan: &CpuPlan) -> Vec<ChildScheduler> {
    let nodes = (1_u16..).zip(&plan.nodes);
    let own_time = nodes.filter(|(_, node)| node.terms.trust == Trust::OwnTime);
    let code = |(place, node): (u16, &punctual_kern::NodePlan)| {
        let slots = plan.slots.iter().filter(|slot| slot.node == place);
        let policy = AnyPolicy::new(node.policy, plan.capacity.entities(), slots.copied());
        let threads = plan.capacity.threads;
        ChildScheduler::new(NodeId::new(place, 0), threads, Box::new(policy))
    };
    own_time.map(code).collect()
}
