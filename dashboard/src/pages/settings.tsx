/** The effective settings of this node with their sources. Secrets are masked. The page changes nothing. */
import { Code, Group, Switch, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { EffectiveSettings } from '../../../src/operations/config/schemas.ts';
import { get } from '../api/client';
import { useUrlState } from '../api/url-state';
import { FilterBox } from '../parts/filter-box';
import { formatCount } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { StatusBadge } from '../parts/status-badge';
import { TextWithCode } from '../parts/text-with-code';

type Setting = EffectiveSettings[number];

const SOURCES: Readonly<Record<Setting['source'], string>> = {
  default: 'default',
  '.env': '.env file',
  environment: 'environment',
  file: 'secret file',
};

export function SettingsPage() {
  // Settings change only with a restart of the service.
  const settings = useQuery({ queryKey: ['settings'], queryFn: () => get<EffectiveSettings>('/config') });
  const [urlState, setUrlState] = useUrlState();
  const text = urlState.get('q') ?? '';
  const showsAll = urlState.get('settings') !== 'set';
  const searchText = text.trim().toLowerCase();
  const allSettings = settings.data ?? [];
  const shownSettings = allSettings.filter(
    ({ name, value, source, meaning }) =>
      (showsAll || source !== 'default') &&
      [name, value ?? '', meaning].some((member) => member.toLowerCase().includes(searchText)),
  );
  return (
    <>
      <PageHead title="Settings" />
      <Text size="sm" c="dimmed" mb="md">
        The effective settings of this node. To change a setting, change the environment or the file <Code>.env</Code>{' '}
        and restart the service. <Code>postrider config</Code> prints the same settings.
      </Text>
      {settings.isPending ? <Loading /> : null}
      {settings.isError ? <ErrorAlert error={settings.error} retry={settings.refetch} /> : null}
      {settings.data === undefined ? null : (
        <>
          <Group align="flex-end" mb="sm">
            <FilterBox
              label="Filter by name, value or meaning"
              value={text}
              onChange={(q) => setUrlState({ q }, true)}
            />
            <Switch
              label="Only changed settings"
              checked={!showsAll}
              onChange={(event) => setUrlState({ settings: event.currentTarget.checked ? 'set' : null }, true)}
              mb={8}
            />
          </Group>
          <Text c="dimmed" size="sm" role="status" mb="xs">
            {shownSettings.length === allSettings.length
              ? formatCount(allSettings.length, 'setting')
              : `${shownSettings.length} of ${formatCount(allSettings.length, 'setting')}`}
          </Text>
          {shownSettings.length === 0 ? (
            <EmptyState title="No setting matches" />
          ) : (
            <SettingTable settings={shownSettings} />
          )}
        </>
      )}
    </>
  );
}

function SettingTable({ settings }: { readonly settings: readonly Setting[] }) {
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Setting</Table.Th>
          <Table.Th scope="col" visibleFrom="sm">
            Value
          </Table.Th>
          <Table.Th scope="col">Source</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {settings.map(({ name, value, source, meaning }) => (
          <Table.Tr key={name} style={{ verticalAlign: 'top' }}>
            <Table.Td>
              <Text inherit ff="monospace" className="wrap">
                {name}
              </Text>
              <Text component="div" hiddenFrom="sm">
                <Value value={value} />
              </Text>
              <Text size="sm" c="dimmed" className="wrap">
                <TextWithCode text={meaning} />
              </Text>
            </Table.Td>
            <Table.Td visibleFrom="sm" w="35%">
              <Value value={value} />
            </Table.Td>
            <Table.Td>
              <StatusBadge tone={source === 'default' ? 'neutral' : 'info'}>{SOURCES[source]}</StatusBadge>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Value({ value }: { readonly value: string | null }) {
  return value === null ? (
    <Text span inherit c="dimmed">
      none
    </Text>
  ) : (
    <Code className="wrap">{value}</Code>
  );
}
