/** One DNS record to publish: its purpose, the values to copy, its status, and the record found in DNS. */
import { Code, Group, Paper, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import type { DomainRecord } from '../../../src/operations/domains/schemas.ts';
import { Copyable } from '../parts/copyable';
import { TextWithCode } from '../parts/text-with-code';
import { KeyBadge, RecordBadge } from './domain-badge';

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
          <RecordBadge found={found} />
          {key === null ? null : <KeyBadge state={key} />}
        </Group>
        <Text size="sm" c="dimmed" className="wrap">
          <TextWithCode text={about} />
        </Text>
        {provider ? null : (
          <dl className="record">
            <RecordPart term="Type">
              <Copyable value={type} label={`the type of ${name}`} />
            </RecordPart>
            <RecordPart term="Name">
              <Copyable value={name} label={`the name ${name}`} />
            </RecordPart>
            <RecordPart term="Value">
              <Copyable value={value} label={`the value of ${name}`} />
            </RecordPart>
          </dl>
        )}
        <CheckResult record={record} />
      </Stack>
    </Paper>
  );
}

function RecordPart({ term, children }: { readonly term: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </>
  );
}

function CheckResult({ record: { found, detail, observed, type } }: { readonly record: DomainRecord }) {
  if (detail === null) return null;
  if (found === 'found')
    return type === 'SES' ? (
      <Text className="wrap">
        <TextWithCode text={detail} />
      </Text>
    ) : null;
  return (
    <Stack gap={4}>
      <Text className="wrap" fw={600}>
        <TextWithCode text={detail} />
      </Text>
      {found === 'unknown' || type === 'SES' ? null : (
        <>
          <Text size="sm">{observed.length === 0 ? 'Found in DNS: no record' : 'Found in DNS:'}</Text>
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
