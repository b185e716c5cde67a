/** How the parts of the installation are, and what wants attention, each with its remedy. */
import { Anchor, Badge, Code, Group, List, Paper, Stack, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { Level, Overview } from '../api/types';

const COLOURS: Readonly<Record<Level, string>> = { ok: '#1e6b37', warning: '#7a5b00', failure: '#a3271c' };
const PARTS: Readonly<Record<Overview['health'][number]['part'], string>> = {
  database: 'Database',
  transport: 'Transport',
  domains: 'Domains',
  feedback: 'Feedback loop',
  nodes: 'Nodes',
};

function LevelBadge({ level }: { readonly level: Level }) {
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
              <Group gap="sm" wrap="nowrap" align="flex-start">
                <LevelBadge level={level} />
                <Text className="wrap">
                  <Text span fw={600}>
                    {PARTS[part]}
                  </Text>{' '}
                  {text}
                </Text>
              </Group>
            </List.Item>
          ))}
        </List>
      </Stack>
    </Paper>
  );
}

export function OverviewAttention({ attention }: { readonly attention: Overview['attention'] }) {
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="attention">
      <Stack gap={6}>
        <Title order={2} size="h4" id="attention">
          Needs attention
        </Title>
        {attention.length === 0 ? (
          <Text c="dimmed">Nothing does.</Text>
        ) : (
          <List listStyleType="none" spacing="sm" styles={{ itemWrapper: { display: 'block' } }}>
            {attention.map(({ level, text, remedy, page }) => (
              <List.Item key={text}>
                <Group gap="sm" wrap="nowrap" align="flex-start">
                  <LevelBadge level={level} />
                  <div>
                    <Text className="wrap" fw={600}>
                      {page === null ? (
                        text
                      ) : (
                        <Anchor component={Link} href={page} inherit underline="always">
                          {text}
                        </Anchor>
                      )}
                    </Text>
                    <Text className="wrap" c="dimmed">
                      <Remedy text={remedy} />
                    </Text>
                  </div>
                </Group>
              </List.Item>
            ))}
          </List>
        )}
      </Stack>
    </Paper>
  );
}

/** What stands between backticks is to be typed. */
function Remedy({ text }: { readonly text: string }) {
  return text.split('`').map((part, at) => {
    const key = `${at} ${part}`;
    return at % 2 === 1 ? <Code key={key}>{part}</Code> : <span key={key}>{part}</span>;
  });
}
