/** How the parts of the installation are, and what wants attention, each with its remedy. */
import { Anchor, Badge, Button, List, Paper, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Overview } from '../../../src/operations/overview/schemas.ts';
import { counted, grouped } from './number';
import { Prose } from './prose';

/** The gravest come first: with more of them than this the figures would be below the first screen. */
const FOLDED = 4;

const COLOURS: Readonly<Record<Overview['health'][number]['level'], string>> = {
  ok: '#1e6b37',
  warning: '#7a5b00',
  failure: '#a3271c',
};
const PARTS: Readonly<Record<Overview['health'][number]['part'], string>> = {
  database: 'Database',
  transport: 'Transport',
  domains: 'Domains',
  feedback: 'Feedback loop',
  nodes: 'Nodes',
};

function LevelBadge({ level }: { readonly level: Overview['health'][number]['level'] }) {
  return (
    <Badge color={COLOURS[level]} variant="filled" tt="none" radius="sm" w="5.4rem" style={{ flex: 'none' }}>
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
                    {PARTS[part]}
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
  const [all, setAll] = useState(false);
  const folds = attention.length > FOLDED + 1;
  const shown = folds && !all ? attention.slice(0, FOLDED) : attention;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="attention">
      <Stack gap="sm" align="flex-start">
        <Title order={2} size="h4" id="attention">
          Needs attention{attention.length === 0 ? '' : ` (${grouped(attention.length)})`}
        </Title>
        {attention.length === 0 ? (
          <Text c="dimmed">Nothing does.</Text>
        ) : (
          <List id="attention-list" listStyleType="none" spacing="sm" styles={{ itemWrapper: { display: 'block' } }}>
            {shown.map((item) => (
              <List.Item key={item.text}>
                <Item item={item} />
              </List.Item>
            ))}
          </List>
        )}
        {folds ? (
          <Button
            variant="default"
            size="compact-sm"
            aria-expanded={all}
            aria-controls="attention-list"
            onClick={() => setAll(!all)}
          >
            {all ? 'Show fewer' : `Show all ${grouped(attention.length)}${failuresIn(attention.slice(FOLDED))}`}
          </Button>
        ) : null}
      </Stack>
    </Paper>
  );
}

/** What is folded away must not look harmless. */
function failuresIn(folded: Overview['attention']): string {
  const count = folded.filter(({ level }) => level === 'failure').length;
  return count === 0 ? '' : `, ${counted(count, 'more failure')} among them`;
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
          <Prose text={remedy} />
        </Text>
      </div>
    </div>
  );
}
