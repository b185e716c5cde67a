/** States and policies of routes in words. */
import { parsePolicy } from '../../../src/model/route.ts';
import type { RouteDetails } from '../../../src/operations/routes.ts';
import { formatPercent } from '../parts/number.ts';

interface Standing {
  readonly tone: 'success' | 'warning' | 'error' | 'neutral';
  readonly label: string;
}

const STANDINGS: Readonly<Record<RouteDetails['state'] | 'throttled', Standing>> = {
  usable: { tone: 'success', label: 'Usable' },
  throttled: { tone: 'warning', label: 'Throttled' },
  probing: { tone: 'warning', label: 'Probing' },
  failed: { tone: 'error', label: 'Failing' },
  paused: { tone: 'neutral', label: 'Paused' },
};

export function getStanding({ state, nodes }: Pick<RouteDetails, 'state' | 'nodes'>): Standing {
  return STANDINGS[state === 'usable' && nodes.some(({ isThrottled }) => isThrottled) ? 'throttled' : state];
}

/** Such as `a 90 % and b 10 %, then c` for `a:90,b:10,c`. A list with unknown routes is shown as it is. */
export function describePolicy(list: string): string {
  const parsed = parsePolicy(
    list,
    list.split(',').map((part) => (part.split(':', 1)[0] ?? '').trim()),
  );
  if (!parsed.ok) return list;
  const steps = parsed.policy.map((step) => {
    const total = step.reduce((sum, { weight }) => sum + weight, 0);
    return step
      .map(({ route, weight }) => (step.length === 1 ? route : `${route} ${formatPercent(weight / total)}`))
      .join(' and ');
  });
  return steps.join(', then ');
}
