/** The health of each part of the installation, and the problems that need attention, each with its remedy. */
import { Button, Stack, Title } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Overview } from '../../../src/operations/overview.ts';
import { Card } from './card';
import { formatCount, formatNumber } from './number';
import { TextWithCode } from './text-with-code';

/**
 * The number of problems that are shown initially, so that the figures are visible without scrolling. Failures are
 * listed first.
 */
const MAX_INITIAL_ITEMS = 3;

const PART_NAMES: Readonly<Record<Overview['health'][number]['part'], string>> = {
  database: 'Database',
  transport: 'Transport',
  domains: 'Domains',
  feedback: 'Feedback',
  nodes: 'Nodes',
};

export function OverviewHealth({ health }: { readonly health: Overview['health'] }) {
  return (
    <Card title="Health" link={{ href: '/health', text: 'Run checks' }}>
      {health.map(({ part, level, text }) => (
        <div key={part} className="health-row">
          <i className={`level-dot ${level}`} />
          <span>
            {PART_NAMES[part]}
            {level === 'ok' ? null : <span className="unseen">: {level}</span>}
          </span>
          <span>{text}</span>
        </div>
      ))}
    </Card>
  );
}

export function OverviewAttention({ attention }: { readonly attention: Overview['attention'] }) {
  const [showAll, setShowAll] = useState(false);
  const isCollapsible = attention.length > MAX_INITIAL_ITEMS;
  const shownItems = isCollapsible && !showAll ? attention.slice(0, MAX_INITIAL_ITEMS) : attention;
  return (
    <section aria-labelledby="attention">
      <Stack gap="xs" align="flex-start">
        <Title order={2} size="h4" id="attention" className="unseen">
          Needs attention{attention.length === 0 ? '' : ` (${formatNumber(attention.length)})`}
        </Title>
        {attention.length === 0 ? (
          <span className="muted">No problems found.</span>
        ) : (
          <AttentionList attention={shownItems} id="attention-list" />
        )}
        {isCollapsible ? (
          <Button
            variant="default"
            size="compact-sm"
            aria-expanded={showAll}
            aria-controls="attention-list"
            onClick={() => setShowAll(!showAll)}
          >
            {showAll
              ? 'Show fewer'
              : `Show all ${formatNumber(attention.length)}${describeHiddenFailures(attention.slice(MAX_INITIAL_ITEMS))}`}
          </Button>
        ) : null}
      </Stack>
    </section>
  );
}

/** The problems, each with its remedy and a link to the page that shows the details. */
export function AttentionList({ attention, id }: { readonly attention: Overview['attention']; readonly id?: string }) {
  return (
    <ul id={id} className="attention" style={{ width: '100%' }}>
      {attention.map((item) => (
        <li key={item.text}>
          <AttentionItem item={item} />
        </li>
      ))}
    </ul>
  );
}

/** Returns the suffix of the button text: the number of failures among the hidden problems. */
function describeHiddenFailures(hiddenProblems: Overview['attention']): string {
  const failureCount = hiddenProblems.filter(({ level }) => level === 'failure').length;
  return failureCount === 0 ? '' : `, including ${formatCount(failureCount, 'more failure')}`;
}

function AttentionItem({ item: { level, text, remedy, page } }: { readonly item: Overview['attention'][number] }) {
  return (
    <div className={`attention-row tone-${level === 'failure' ? 'error' : 'warning'}`}>
      <IconAlertTriangle size={18} stroke={1.8} aria-hidden />
      <div className="attention-text">
        <span className="unseen">{level}: </span>
        <b>{text}</b>
        <div>
          <TextWithCode text={remedy} />
        </div>
      </div>
      {page === null ? null : (
        <Button component={Link} href={page} variant="default" size="xs" aria-label={`Show: ${text}`}>
          Show
        </Button>
      )}
    </div>
  );
}
