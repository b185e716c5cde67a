/** Selects event types by group. */
import { Button, Checkbox, Group, Input, Stack } from '@mantine/core';
import { DEFAULT_WEBHOOK_EVENT_TYPES, WEBHOOK_EVENT_TYPES, type WebhookEventType } from '../../../src/model/webhook.ts';
import { EVENT_GROUPS } from './event-text';

interface EventSelectProps {
  readonly selectedTypes: readonly WebhookEventType[];
  readonly onChange: (types: readonly WebhookEventType[]) => void;
  /** The API error that concerns the event types. */
  readonly error: string | null;
}

export function EventSelect({ selectedTypes, onChange, error }: EventSelectProps) {
  const selectTypes = (types: readonly WebhookEventType[], isSelected: boolean) =>
    onChange(WEBHOOK_EVENT_TYPES.filter((type) => (types.includes(type) ? isSelected : selectedTypes.includes(type))));
  return (
    <fieldset className="plain">
      <Group component="legend" justify="space-between" w="100%" mb="xs">
        <Input.Label component="span" labelElement="div">
          Events
        </Input.Label>
      </Group>
      <Group gap="xs" mb="sm">
        <Button size="compact-sm" variant="default" onClick={() => onChange(DEFAULT_WEBHOOK_EVENT_TYPES)}>
          Default
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => onChange(WEBHOOK_EVENT_TYPES)}>
          All
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => onChange([])}>
          None
        </Button>
      </Group>
      <Stack gap="sm">
        {EVENT_GROUPS.map(({ label, types }) => (
          <EventGroup key={label} label={label} types={types} selectedTypes={selectedTypes} onSelect={selectTypes} />
        ))}
      </Stack>
      {error === null ? null : (
        <Input.Error mt="xs" role="alert">
          {error}
        </Input.Error>
      )}
    </fieldset>
  );
}

interface EventGroupProps {
  readonly label: string;
  readonly types: readonly WebhookEventType[];
  readonly selectedTypes: readonly WebhookEventType[];
  readonly onSelect: (types: readonly WebhookEventType[], isSelected: boolean) => void;
}

function EventGroup({ label, types, selectedTypes, onSelect }: EventGroupProps) {
  const selectedCount = types.filter((type) => selectedTypes.includes(type)).length;
  return (
    <div>
      <Checkbox
        label={label}
        checked={selectedCount === types.length}
        indeterminate={selectedCount > 0 && selectedCount < types.length}
        onChange={(event) => onSelect(types, event.currentTarget.checked)}
        fw={600}
      />
      <div className="event-types">
        {types.map((type) => (
          <Checkbox
            key={type}
            label={type}
            size="xs"
            checked={selectedTypes.includes(type)}
            onChange={(event) => onSelect([type], event.currentTarget.checked)}
          />
        ))}
      </div>
    </div>
  );
}
