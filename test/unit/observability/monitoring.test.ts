import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ERROR_CODES } from '../../../src/http/errors.ts';
import { STATES } from '../../../src/model/message.ts';
import type { Metrics } from '../../../src/observability/metrics.ts';
import { createTestMetrics } from '../../rig/metrics.ts';

const readMonitoringFile = (name: string) =>
  readFileSync(new URL(`../../../monitoring/${name}`, import.meta.url), 'utf8');

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly id?: number;
    readonly type: string;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets?: readonly { readonly expr: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] };
}
interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly remedy: string };
}

const DASHBOARD = JSON.parse(readMonitoringFile('grafana-dashboard.json')) as Dashboard;
const RULES = (parse(readMonitoringFile('prometheus-alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);
const EXPRESSIONS = [
  ...DASHBOARD.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
  ...DASHBOARD.templating.list
    .filter(({ name }) => name !== 'datasource')
    .map(({ name, query }) => [`$${name}`, query] as const),
  ...RULES.map(({ alert, expr }) => [alert, expr] as const),
];

function createMetricsWithEverySeries(): Metrics {
  const metrics = createTestMetrics({
    readQueueStatistics: async () => ({
      queued: 1,
      sending: 1,
      uncertain: 1,
      held: 1,
      oldest: { id: 'first', acceptedAt: 1 },
    }),
    readLastFeedbackAt: async () => 1,
    refusalReasons: ERROR_CODES,
    notificationTargets: ['mailto:ops@example.com'],
  });
  const { refusedReports, webhookFailures, commits } = metrics.meters;
  refusedReports.inc({ reason: 'store' });
  webhookFailures.inc({ webhook: 'wh_1' });
  for (const { size, seconds } of commits.values()) {
    size.observe(1);
    seconds.observe(1);
  }
  return metrics;
}

async function readSeries(): Promise<{
  readonly names: ReadonlySet<string>;
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>;
}> {
  const names = new Set<string>(['up']);
  const labels = new Map<string, Set<string>>();
  for (const line of (await createMetricsWithEverySeries().scrape()).text.split('\n')) {
    const name = /^([a-z_][a-z0-9_]*)/.exec(line)?.[1];
    if (name === undefined) continue;
    names.add(name);
    for (const [, label = '', value = ''] of line.matchAll(/([a-z_]+)="([^"]*)"/g)) {
      labels.set(`${name} ${label}`, (labels.get(`${name} ${label}`) ?? new Set()).add(value));
    }
  }
  return { names, labels };
}

test.each(EXPRESSIONS)('%s uses only existing metrics: %s', async (_, expression) => {
  const { names, labels } = await readSeries();
  const metrics = [...expression.matchAll(/\b((?:postrider|process|nodejs)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?/g)];
  expect(metrics.length).toBeGreaterThan(0);
  for (const [, name = '', selector = ''] of metrics) {
    expect([...names]).toContain(name);
    for (const [, label = '', , value = ''] of selector.matchAll(/([a-z_]+)(=~|!~|!=|=)"([^"]*)"/g)) {
      // Prometheus adds these labels.
      if (['job', 'instance'].includes(label)) continue;
      const knownValues = labels.get(`${name} ${label}`);
      expect(knownValues, `${name} has no label ${label}`).toBeDefined();
      // A series of refused reports appears with its first report. All other series exist from the start.
      if (name === 'postrider_feedback_refused_total') continue;
      for (const labelValue of value.split('|'))
        expect([...(knownValues ?? []), ...(label === 'state' ? STATES : [])]).toContain(labelValue);
    }
  }
});

test('every metric of the service is used by a panel or an alert', () => {
  const usedText = EXPRESSIONS.map(([, expression]) => expression).join(' ');
  return readSeries().then(({ names }) => {
    const serviceMetrics = [...names].filter(
      (name) => name.startsWith('postrider_') && !/_(?:bucket|sum|count)$/.test(name),
    );
    expect(serviceMetrics.filter((name) => !usedText.includes(name))).toEqual([]);
  });
});

test('docs/monitoring.md lists every metric of the service and no other metrics', async () => {
  const page = readFileSync(new URL('../../../docs/monitoring.md', import.meta.url), 'utf8');
  const text = (await createMetricsWithEverySeries().scrape()).text;
  const labels = new Map<string, Set<string>>();
  for (const [, name = '', pairs = ''] of text.matchAll(/^(postrider_[a-z_]+?)(?:_bucket|_sum|_count)?\{([^}]*)\}/gm)) {
    for (const [, label = ''] of pairs.matchAll(/([a-z_]+)="/g))
      if (label !== 'le') labels.set(name, (labels.get(name) ?? new Set()).add(label));
  }
  const types = new Map([...text.matchAll(/^# TYPE (postrider_\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
  const rows = [...types].map(([name = '', type]) => {
    const labelNames = [...(labels.get(name) ?? [])].join(',');
    return `| \`${name}${labelNames === '' ? '' : `{${labelNames}}`}\` | ${type}`;
  });
  expect(rows.length).toBeGreaterThan(15);
  const listedRows = [...page.matchAll(/^(\| `postrider_[^|]*\| \w+) \| \S/gm)].map(([, row]) => row);
  expect(listedRows.toSorted()).toEqual(rows.toSorted());
});

test('every alert has a summary, a remedy and a severity', () => {
  expect(new Set(RULES.map(({ alert }) => alert)).size).toBe(RULES.length);
  for (const { labels, annotations } of RULES) {
    expect(['page', 'ticket']).toContain(labels.severity);
    expect([annotations.summary.length, annotations.remedy.length].every((length) => length > 10)).toBe(true);
  }
});

test('docs/monitoring.md lists the alerts with their severities, and no others', () => {
  const page = readFileSync(new URL('../../../docs/monitoring.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(Postrider\w+)` \| (\w+) \|/gm)].map(([, alert, severity]) => [alert, severity]);
  expect(rows).toEqual(RULES.map(({ alert, labels }) => [alert, labels.severity]));
});
