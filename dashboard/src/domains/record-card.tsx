/** One record to publish: what it is for, its parts to be copied, its state, and what was seen where it is not as it should be. */
import { Code, Group, Paper, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import type { DomainRecord } from '../../../src/operations/domains/schemas.ts';
import { Copyable } from '../parts/copy';
import { Prose } from '../parts/prose';
import { FoundMark, KeyMark } from './domain-mark';

const PURPOSES: Readonly<Record<DomainRecord['purpose'], string>> = {
  dkim: 'DKIM',
  spf: 'SPF',
  dmarc: 'DMARC',
  'return-path': 'Return path',
  provider: 'Provider',
};

export function RecordCard({ record }: { readonly record: DomainRecord }) {
  const { purpose, type, name, value, found, key, about } = record;
  const provider = type === 'SES';
  return (
    <Paper withBorder p="md" component="li">
      <Stack gap="sm">
        <Group gap="xs">
          <Title order={3} size="h5">
            {PURPOSES[purpose]}
          </Title>
          <FoundMark found={found} />
          {key === null ? null : <KeyMark state={key} />}
        </Group>
        <Text size="sm" c="dimmed" className="wrap">
          <Prose text={about} />
        </Text>
        {provider ? null : (
          <dl className="record">
            <Part term="Type">
              <Copyable value={type} label={`the type of ${name}`} />
            </Part>
            <Part term="Name">
              <Copyable value={name} label={`the name ${name}`} />
            </Part>
            <Part term="Value">
              <Copyable value={value} label={`the value of ${name}`} />
            </Part>
          </dl>
        )}
        <Verdict record={record} />
      </Stack>
    </Paper>
  );
}

function Part({ term, children }: { readonly term: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Verdict({ record: { found, detail, observed, type } }: { readonly record: DomainRecord }) {
  if (detail === null) return null;
  if (found === 'found')
    return type === 'SES' ? (
      <Text className="wrap">
        <Prose text={detail} />
      </Text>
    ) : null;
  return (
    <Stack gap={4}>
      <Text className="wrap" fw={600}>
        <Prose text={detail} />
      </Text>
      {found === 'unknown' || type === 'SES' ? null : (
        <>
          <Text size="sm">{observed.length === 0 ? 'Seen there: nothing' : 'Seen there:'}</Text>
          {observed.map((text) => (
            <Code key={text} block className="wrap" style={{ whiteSpace: 'pre-wrap' }}>
              {text}
            </Code>
          ))}
        </>
      )}
    </Stack>
  );
}
