/** The sign-in page: the password field, or the instructions for finding the one-time link. */
import { Button, Center, Group, Loader, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { signIn as requestSignIn } from './api/session';
import { Logo } from './frame';
import { ErrorAlert } from './parts/page-states';

/**
 * Sends one sign-in request with the link from the URL. If the request succeeds, opens the overview; if it fails, opens
 * the sign-in page with the reason.
 */
export function SignInWithLink({ link }: { readonly link: string }) {
  const queryClient = useQueryClient();
  const [, navigate] = useLocation();
  const hasStarted = useRef(false);
  useEffect(() => {
    if (hasStarted.current) return;
    hasStarted.current = true;
    requestSignIn({ link }).then(
      () => {
        void queryClient.resetQueries({ queryKey: ['session'] });
        navigate('/', { replace: true });
      },
      () => navigate('/?refused=link', { replace: true }),
    );
  }, [link, navigate, queryClient]);
  return (
    <Center mih="40vh">
      <Loader aria-label="Signing in" />
    </Center>
  );
}

export function SignIn({ reason }: { readonly reason: string }) {
  const queryClient = useQueryClient();
  const [password, setPassword] = useState('');
  const signIn = useMutation({
    mutationFn: () => requestSignIn({ password }),
    onSuccess: () => queryClient.invalidateQueries(),
  });
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="xl" w="100%" maw="26rem" shadow="sm">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            signIn.mutate();
          }}
        >
          <Stack>
            <Group gap={10}>
              <Logo />
              <Title order={1} size="h2">
                Postrider
              </Title>
            </Group>
            <Text c="dimmed">{reason}</Text>
            <PasswordInput
              label="Operator password"
              description="The value of POSTRIDER_OPERATOR_PASSWORD. If it is not set, open the link that the service printed when it started."
              autoComplete="current-password"
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
            />
            {signIn.isError ? <ErrorAlert error={signIn.error} /> : null}
            <Button type="submit" loading={signIn.isPending} disabled={password === ''}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
