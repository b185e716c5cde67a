/** The health of each part of the installation, and the problems that need attention, each with its remedy. */
import { Anchor, Badge, Button, List, Paper, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Overview } from '../../../src/operations/overview/schemas.ts';
import { formatCount, formatNumber } from './number';
import { TextWithCode } from './text-with-code';

/**
 * The number of problems that are shown initially, so that the figures stay on the first screen. Failures are listed
 * first.
 */
const MAX_INITIAL_ITEMS = 4;

const COLORS: Readonly<Record<Overview['health'][number]['level'], string>> = {
  ok: '#1e6b37',
  warning: '#7a5b00',
  failure: '#a3271c',
};
const PART_NAMES: Readonly<Record<Overview['health'][number]['part'], string>> = {
  database: 'Database',
  transport: 'Transport',
  domains: 'Domains',
  feedback: 'Feedback',
  nodes: 'Nodes',
};

function LevelBadge({ level }: { readonly level: Overview['health'][number]['level'] }) {
  return (
    <Badge color={COLORS[level]} variant="filled" tt="none" radius="sm" w="5.4rem" style={{ flex: 'none' }}>
      {level}
    </Badge>
  );
}

export function OverviewHealth({ health }: { readonly health: Overview['health'] }) {
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="health">
      <Stack gap={6}>
        <Title order={2} size="h4" id="health">
          Health
        </Title>
        <List listStyleType="none" spacing={6} styles={{ itemWrapper: { display: 'block' } }}>
          {health.map(({ part, level, text }) => (
            <List.Item key={part}>
              <div className="marked">
                <LevelBadge level={level} />
                <Text className="wrap" size="sm">
                  <Text span inherit fw={600}>
                    {PART_NAMES[part]}
                  </Text>{' '}
                  {text}
                </Text>
              </div>
            </List.Item>
          ))}
        </List>
      </Stack>
    </Paper>
  );
}

export function OverviewAttention({ attention }: { readonly attention: Overview['attention'] }) {
  const [showAll, setShowAll] = useState(false);
  const collapsible = attention.length > MAX_INITIAL_ITEMS + 1;
  const shownItems = collapsible && !showAll ? attention.slice(0, MAX_INITIAL_ITEMS) : attention;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="attention">
      <Stack gap="sm" align="flex-start">
        <Title order={2} size="h4" id="attention">
          Needs attention{attention.length === 0 ? '' : ` (${formatNumber(attention.length)})`}
        </Title>
        {attention.length === 0 ? (
          <Text c="dimmed">No problems found.</Text>
        ) : (
          <List id="attention-list" listStyleType="none" spacing="sm" styles={{ itemWrapper: { display: 'block' } }}>
            {shownItems.map((item) => (
              <List.Item key={item.text}>
                <Item item={item} />
              </List.Item>
            ))}
          </List>
        )}
        {collapsible ? (
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
    </Paper>
  );
}

/** Returns the suffix of the button: the number of failures among the hidden problems. */
function describeHiddenFailures(hidden: Overview['attention']): string {
  const count = hidden.filter(({ level }) => level === 'failure').length;
  return count === 0 ? '' : `, including ${formatCount(count, 'more failure')}`;
}

function Item({ item: { level, text, remedy, page } }: { readonly item: Overview['attention'][number] }) {
  return (
    <div className="marked long">
      <LevelBadge level={level} />
      <div>
        <Text className="wrap" fw={600}>
          {page === null ? (
            text
          ) : (
            <Anchor component={Link} href={page} inherit>
              {text}
            </Anchor>
          )}
        </Text>
        <Text className="wrap" size="sm" c="dimmed">
          <TextWithCode text={remedy} />
        </Text>
      </div>
    </div>
  );
}
